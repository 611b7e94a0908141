(* Records, maps, hash tables, lists, arrays of floats and a tree. *)
module Names = Map.Make (String)
type item = { id : int; name : string; city : string; price : float; words : string list }
type tree = Leaf | Node of tree * int * tree

let data = Sys.argv.(1)
let lines name most =
  let file = open_in_bin (data ^ "/" ^ name) in
  let rec loop left all =
    if left = 0 then List.rev all
    else match input_line file with line -> loop (left - 1) (line :: all) | exception End_of_file -> List.rev all in
  loop most []

let parse line =
  let f = Array.of_list (String.split_on_char '\t' line) in
  { id = int_of_string f.(0); name = f.(1); city = f.(3); price = float_of_string f.(4);
    words = String.split_on_char ' ' f.(9) }

let items = List.rev (List.rev_map parse (lines "records.tsv" 40000))
let by_name = List.fold_left (fun all one ->
  Names.update one.name (function None -> Some [one] | Some more -> Some (one :: more)) all) Names.empty items
let index : (string, int) Hashtbl.t = Hashtbl.create 1000
let () = List.iteri (fun number line ->
  List.iter (fun word -> Hashtbl.add index word number) (String.split_on_char ' ' line)) (lines "docs.txt" 50000)
let floats = Array.init 300000 (fun at -> sin (float at /. 70.) *. float at)
let rec tree depth = if depth = 0 then Leaf else Node (tree (depth - 1), depth * 3, tree (depth - 1))
let root = tree 16
let () = close_out (open_out Sys.argv.(2)); Unix.sleep 600;
  Printf.printf "%d %d %b\n" (Names.cardinal by_name) (Array.length floats) (root = Leaf)
