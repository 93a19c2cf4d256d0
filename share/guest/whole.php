<?php
/**
 * Fails a program whose PHP is ended before it came to its own end, by code of the site that it
 * runs: an answer of such code, with status 0, would be taken for the program's.
 *
 * `$codebox_doing` says what goes on; the program empties it when it is done.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

$codebox_doing = '';
// Registered before any of that code can be: nothing registered later has the last word.
register_shutdown_function(
	static function () use ( &$codebox_doing ): void {
		if ( '' !== $codebox_doing ) {
			fwrite( STDERR, "PHP was ended while {$codebox_doing}\n" );
			exit( 1 );
		}
	}
);
