<?php
namespace Shop;
use InvalidArgumentException;
class Inventory {
    var $items = array();
    const UNIT = 'pc';
    function add($name,$count=1) {
        if(!is_int($count) || $count<1) throw new InvalidArgumentException( "count" );
        if (isset($this->items[$name])) { $this->items[$name]+=$count; }
        else {
            $this->items[$name]=$count;
        }
        return $this;
    }
    public static function FromLines( array $lines ) {
        $inventory=new self;
        foreach($lines as $line){
            list($name,$count)=explode(':',$line);
            $inventory->add(trim($name),(int)$count);
        }
        return $inventory;
    }
    function total( ) {
        $sum = 0;
	foreach ($this->items as $count) $sum += $count;
        return $sum;
    }
}
