<?php
/**
 * Command `wordpress.runtime-discovery`: describes this WordPress.
 *
 * `surface` selects one part: runtime, plugins, themes, content, users, abilities; by default all parts are
 * returned.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/discovery.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

finish(
	static function ( Arguments $arguments ): array {
		$surfaces = Discovery::SURFACES;
		$surface  = $arguments->word( 'surface', array( 'all', ...$surfaces ), 'all' );
		$document = array(
			'schema'  => 'wp-codebox/wordpress-runtime-discovery/v1',
			'surface' => $surface,
		);
		foreach ( 'all' === $surface ? $surfaces : array( $surface ) as $name ) {
			$document[ $name ] = ( new Discovery() )->surface( $name );
		}
		return $document;
	}
);
