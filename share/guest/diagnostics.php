<?php
/**
 * Records the database queries of a PHP run, up to a limit, and writes them when PHP ends.
 *
 * CODEBOX_DIAGNOSTICS is {capture: wpdb-queries, maxItems, maxBytes, file}. The file is a JSON
 * document `wp-codebox/wpdb-queries/v1`, {total, items: [{query, seconds, caller}], cut}.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

( static function (): void {
	$asked = json_decode( (string) getenv( 'CODEBOX_DIAGNOSTICS' ), true );
	putenv( 'CODEBOX_DIAGNOSTICS' );
	// Environment variable that is set only when the guest has no root file system of its own.
	$file = is_array( $asked ) ? getenv( 'CODEBOX_ROOT' ) . $asked['file'] : '';
	if ( '' === $file ) {
		return;
	}
	is_dir( dirname( $file ) ) || mkdir( dirname( $file ), 0700, true );
	is_file( $file ) && unlink( $file );
	defined( 'SAVEQUERIES' ) || define( 'SAVEQUERIES', true );
	register_shutdown_function(
		static function () use ( $asked, $file ): void {
			$queries = isset( $GLOBALS['wpdb'] ) ? (array) $GLOBALS['wpdb']->queries : array();
			$items   = array();
			$room    = (int) $asked['maxBytes'];
			foreach ( $queries as $row ) {
				$text  = mb_scrub( (string) $row[0], 'UTF-8' );
				$room -= strlen( $text );
				if ( $room < 0 || count( $items ) >= (int) $asked['maxItems'] ) {
					break;
				}
				$callers = explode( ', ', (string) ( $row[2] ?? '' ) );
				$items[] = array(
					'query'   => $text,
					'seconds' => (float) ( $row[1] ?? 0 ),
					'caller'  => (string) end( $callers ),
				);
			}
			$document = array(
				'schema' => 'wp-codebox/wpdb-queries/v1',
				'total'  => count( $queries ),
				'items'  => $items,
				'cut'    => count( $items ) < count( $queries ),
			);
			file_put_contents( $file, json_encode( $document, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE ) );
		}
	);
} )();
