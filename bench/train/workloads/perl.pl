# Hashes of hashes, arrays, an index of words and matches of expressions.
use strict;
use warnings;

my ($data, $ready) = @ARGV;
my (@records, %by_city, %index, %packages, @links);
sub lines { open my $file, '<:encoding(UTF-8)', "$data/$_[0]" or die "$_[0]: $!"; return $file }

my $file = lines('records.tsv');
while (<$file>) {
  chomp;
  last if $. > 30000;
  my @f = split /\t/;
  my $record = { id => $f[0] + 0, name => $f[1], email => $f[2], city => $f[3], price => $f[4] * 1.19,
    weight => $f[5] + 0, date => [split /-/, $f[6]], note => $f[9] };
  push @records, $record;
  push @{ $by_city{ $f[3] }{ $f[6] } }, $record;
}
no warnings;
open $file, '<', "$data/docs.txt" or die;
while (<$file>) {
  last if $. > 90000;
  push @{ $index{ lc $1 } }, $. while /(\w{3,})/g;
  push @links, { url => $1, line => $_ } if m{(https?://\S+)};
}
{
  local $/ = '';
  open $file, '<', "$data/packages.txt" or die;
  while (<$file>) {
    last if $. > 8000;
    my %fields = /^([\w-]+): (.*)$/mg;
    $fields{Depends} = [split /, /, $fields{Depends} // ''];
    $packages{ $fields{Package} } = \%fields;
  }
}
my @sorted = sort { $a->{price} <=> $b->{price} } @records;
open my $done, '>', $ready or die;
close $done;
sleep 600;
