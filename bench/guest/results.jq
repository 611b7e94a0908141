# From the guests' lines (bench/guest/scenarios/instructions) to results.json.
# One instruction is one nanosecond of the guest's clock; idle time is in ticks of 10 ms.
def per_request($n): . / $n | round;

[inputs | select(.error == 0) |
  .requests as $n | (.virtual_ms * 1e6) as $all | (.idle_ticks * 1e7) as $idle |
  (.server_user_ticks / ([.server_user_ticks + .server_system_ticks, 1] | max)) as $user_share |
  {
    test, target, requests: $n,
    instructions: ($all - $idle | per_request($n)),
    server: (.server_ns | per_request($n)),
    server_user: (.server_ns * $user_share | per_request($n)),
    idle_ns: ($idle | per_request($n)),
    emulated_us: ($all / $n / 100 | round / 10)
  }]
| {note: $note, unit: "guest instructions per request", results: .}
