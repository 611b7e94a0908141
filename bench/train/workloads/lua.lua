-- Tables as records, arrays, an index of words and a tree.
local data, ready = arg[1], arg[2]
local records, by_city, index, floats = {}, {}, {}, {}

for line in io.lines(data .. '/records.tsv') do
  local f = {}
  for part in line:gmatch('[^\t]+') do f[#f + 1] = part end
  local record = { id = tonumber(f[1]), name = f[2], email = f[3], city = f[4], price = tonumber(f[5]),
    weight = tonumber(f[6]), address = f[8], token = f[9], note = f[10] }
  records[#records + 1] = record
  by_city[f[4]] = by_city[f[4]] or {}
  by_city[f[4]][record.id] = record
  if #records == 40000 then break end
end
local number = 0
for line in io.lines(data .. '/docs.txt') do
  number = number + 1
  for word in line:gmatch('%a+') do
    local places = index[word]
    if not places then places = {}; index[word] = places end
    places[#places + 1] = number
  end
  if number == 80000 then break end
end
for at = 1, 300000 do floats[at] = math.sin(at / 90) * at end
local function tree(depth)
  if depth == 0 then return { value = records[depth + 1], weight = 0.5 } end
  return { left = tree(depth - 1), right = tree(depth - 1), depth = depth }
end
local root = tree(15)
local functions = {}
for at = 1, 10000 do functions[at] = function() return records[at].price + floats[at] end end
io.open(ready, 'w'):close()
os.execute('sleep 600')
print(root.depth, #functions)
