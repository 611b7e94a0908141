# shellcheck shell=bash
# Arrays and associative arrays of a long script.
declare -A by_mail notes
declare -a names
while IFS=$'\t' read -r id name mail city _ _ _ _ token note; do
  names+=("$name $city")
  by_mail[$mail]=$id
  notes[$token]=$note
  ((${#names[@]} < 20000)) || break
done <"$1/records.tsv"
mapfile -t -n 40000 lines <"$1/docs.txt"
: >"$2"
sleep 600
printf '%s\n' "${#by_mail[@]} ${#notes[@]} ${#lines[@]}"
