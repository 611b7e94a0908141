# Objects, hashes, symbols, parsed JSON and an index of words.
require 'json'
require 'set'

data, ready = ARGV
Record = Struct.new(:id, :name, :email, :city, :price, :weight, :date, :address, :token, :note)
records = File.foreach("#{data}/records.tsv", encoding: 'UTF-8').first(30_000).map do |line|
  f = line.chomp.split("\t")
  Record.new(f[0].to_i, f[1], f[2].to_sym, f[3].to_sym, f[4].to_f, f[5].to_f, f[6].split('-').map(&:to_i),
             f[7], f[8].to_i(16), f[9].split)
end
by_city = records.group_by(&:city)
parsed = File.foreach("#{data}/records.json").first(15_000).map { |line| JSON.parse(line, symbolize_names: true) }
index = Hash.new { |hash, key| hash[key] = [] }
File.foreach("#{data}/docs.txt", encoding: 'UTF-8').first(60_000).each_with_index do |line, number|
  line.scrub.split.each { |word| index[word] << number }
end
packages = File.read("#{data}/packages.txt", 8 << 20).force_encoding('UTF-8').scrub.split("\n\n").to_h do |part|
  fields = part.lines.filter_map { |line| line.chomp.split(': ', 2) if line.include?(': ') }.select { |f| f.size == 2 }
  [fields.first&.last, fields.to_h]
end
cheap = Set.new(records.select { |record| record.price < 20 }.map(&:id))
floats = Array.new(300_000) { |at| Math.sin(at / 100.0) * at }
closures = records.first(5000).map { |record| -> { record.price * floats[record.id % 1000] } }
File.write(ready, '')
sleep 600
puts [by_city, parsed, index, packages, cheap, closures].map(&:size)
