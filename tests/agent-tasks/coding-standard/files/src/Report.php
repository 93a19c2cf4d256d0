<?php

namespace Shop;

final class Report
{
    public function lines(Inventory $inventory) : array
    {
        $lines = [];
        ksort( $inventory->items );
        foreach ($inventory->items as $name => $count) {
            switch (true) {
            case $count > 99:
                $lines[] = sprintf('%s: many', $name);
                break;
            default:
                $lines[] = sprintf('%s: %d %s', $name, $count, Inventory::UNIT);
            }
        }
        return $lines;
    }
}
?>
