<?php
/**
 * The check: passes when the greeting is spelled right.
 */

declare(strict_types=1);

require getcwd() . '/sample.php';
echo sample_greeting(), "\n";
exit( 'hello' === sample_greeting() ? 0 : 1 );
