# From results.json to one markdown table a test.
def name: if . == "zram" or . == "brd" then . else "uzram " + . end;
def row: "| \(join(" | ")) |";

.results as $results |
.note, "",
(reduce $results[].test as $test ([]; if index($test) then . else . + [$test] end) | .[] |
  . as $test | "### \($test)", "",
  (["device", "instructions", "of them the server", "its user code", "idle ns", "emulated us",
    "requests"] | row),
  "|---|---:|---:|---:|---:|---:|---:|",
  ($results[] | select(.test == $test) |
    [(.target | name), .instructions, .server, .server_user, .idle_ns, .emulated_us, .requests]
    | map(tostring) | row),
  "")
