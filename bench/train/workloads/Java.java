// Collections of objects, boxed numbers, strings, arrays and an index of words.
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.LocalDate;
import java.util.*;
import java.util.stream.*;

public class Java {
  record Item(int id, String name, String email, String city, double price, double weight, LocalDate date,
      List<String> words) {}

  static List<String> lines(String folder, String name, int most) throws Exception {
    byte[] bytes = Files.readAllBytes(Path.of(folder, name));
    return new String(bytes, StandardCharsets.UTF_8).lines().limit(most).collect(Collectors.toList());
  }

  static Item parse(String line) {
    String[] f = line.split("\t");
    return new Item(Integer.parseInt(f[0]), f[1], f[2], f[3].intern(), Double.parseDouble(f[4]),
        Double.parseDouble(f[5]), LocalDate.parse(f[6]), Arrays.asList(f[9].split(" ")));
  }

  public static void main(String[] arguments) throws Exception {
    String folder = arguments[0];
    List<Item> items = lines(folder, "records.tsv", 60000).stream().map(Java::parse).toList();
    Map<String, TreeMap<LocalDate, List<Item>>> byCity = new HashMap<>();
    for (Item item : items)
      byCity.computeIfAbsent(item.city(), key -> new TreeMap<>())
          .computeIfAbsent(item.date(), key -> new ArrayList<>()).add(item);
    Map<String, List<Integer>> index = new HashMap<>();
    int number = 0;
    for (String line : lines(folder, "docs.txt", 100000)) {
      for (String word : line.split("\\W+")) index.computeIfAbsent(word, key -> new ArrayList<>()).add(number);
      number++;
    }
    List<StringBuilder> builders = new LinkedList<>();
    for (String line : lines(folder, "source.txt", 40000)) builders.add(new StringBuilder(line));
    double[] series = IntStream.range(0, 500000).mapToDouble(at -> Math.sin(at / 60.0) * at).toArray();
    long[] keys = items.stream().mapToLong(item -> item.id() * 2654435761L).sorted().toArray();
    PriorityQueue<Item> queue = new PriorityQueue<>(Comparator.comparingDouble(Item::price));
    queue.addAll(items);
    Files.createFile(Path.of(arguments[1]));
    Thread.sleep(600000);
    System.out.println(byCity.size() + index.size() + builders.size() + series.length + keys.length + queue.size());
  }
}
