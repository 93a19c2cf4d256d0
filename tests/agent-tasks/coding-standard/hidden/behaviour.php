<?php

/** Checks that behaviour and names are unchanged, and the standard met with every rule enabled. */

$root = $argv[1];
$fail = static function (string $why): void {
    fwrite(STDERR, $why . "\n");
    exit(1);
};
foreach (['Inventory', 'Report'] as $name) {
    $file = "$root/src/$name.php";
    $text = is_file($file) ? file_get_contents($file) : '';
    if (preg_match('/phpcs:|@codingStandards/', $text)) {
        $fail("$name.php switches rules off");
    }
    require $file;
}
exec('phpcs --standard=PSR12 -q --report=emacs ' . escapeshellarg("$root/src"), $lines, $status);
if ($status !== 0) {
    $fail("phpcs: exit $status\n" . implode("\n", $lines));
}
$inventory = Shop\Inventory::fromlines(['nut: 3', ' bolt : 2', 'nut:100']);
if ($inventory->add('pin')->items !== ['nut' => 103, 'bolt' => 2, 'pin' => 1] || $inventory->total() !== 106) {
    $fail('items: ' . json_encode($inventory->items));
}
if (Shop\Inventory::UNIT !== 'pc') {
    $fail('the constant is gone');
}
if ((new Shop\Report())->lines($inventory) !== ['bolt: 2 pc', 'nut: many', 'pin: 1 pc']) {
    $fail('lines: ' . json_encode((new Shop\Report())->lines($inventory)));
}
foreach ([0, -1, '2'] as $count) {
    try {
        $inventory->add('x', $count);
    } catch (InvalidArgumentException $error) {
        continue;
    }
    $fail('a wrong count was taken');
}
echo "hidden: ok\n";
