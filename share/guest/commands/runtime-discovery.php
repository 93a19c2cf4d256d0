<?php
/**
 * Command `wordpress.runtime-discovery`: describes this WordPress.
 *
 * `surface` selects parts, separated by commas: rest, admin, database, frontend, blocks, auth, execution, and
 * runtime, plugins, themes, content, users, abilities; by default all parts are returned.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/discovery.php';
// Only the admin area has a menu to list.
require __DIR__ . '/lib/admin-area.php';

finish(
	static function ( Arguments $arguments ): array {
		$known   = Discovery::SURFACES;
		$asked   = $arguments->texts( 'surface' );
		$unknown = array_diff( $asked, array( 'all', ...$known ) );
		if ( array() !== $unknown ) {
			throw Refusal::input( sprintf( 'surface has %s, but may have all, %s', Arguments::shown( reset( $unknown ) ), implode( ', ', $known ) ) );
		}
		$names     = array() === $asked || in_array( 'all', $asked, true ) ? $known : array_values( array_intersect( $known, $asked ) );
		$document  = result( 'wordpress-runtime-discovery' ) + array(
			'surfaces'    => $names,
			'diagnostics' => array(),
		);
		$discovery = new Discovery();
		foreach ( $names as $name ) {
			$document[ $name ] = $discovery->surface( $name );
		}
		return $document;
	}
);
