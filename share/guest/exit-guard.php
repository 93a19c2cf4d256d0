<?php
/**
 * Makes a guest program fail when plugin or theme code that it runs ends PHP early. Otherwise the output of
 * such code, with exit status 0, would be taken for the program's result.
 *
 * `$codebox_doing` describes the current step; the program sets it to '' at its end.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

$codebox_doing = '';
// Registered before any site code runs, so PHP calls this shutdown function first. Its exit() keeps PHP from
// calling the shutdown functions that site code registers.
register_shutdown_function(
	static function () use ( &$codebox_doing ): void {
		if ( '' !== $codebox_doing ) {
			fwrite( STDERR, "PHP was ended while {$codebox_doing}\n" );
			exit( 1 );
		}
	}
);
