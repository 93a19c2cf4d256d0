<?php
/**
 * One request by `file_get_contents()`: `php fetch.php URL`. Exit status 1 if it failed.
 */

exit( false === file_get_contents( $argv[1] ) ? 1 : 0 );
