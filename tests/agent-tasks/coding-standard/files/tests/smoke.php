<?php

require __DIR__ . '/../src/Inventory.php';
require __DIR__ . '/../src/Report.php';

$inventory = Shop\Inventory::FromLines(['nut: 3', 'bolt: 2']);
if ($inventory->total() !== 5) {
    fwrite(STDERR, "total is {$inventory->total()}\n");
    exit(1);
}
echo "smoke: ok\n";
