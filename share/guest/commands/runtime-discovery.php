<?php
/**
 * Command `wordpress.runtime-discovery`: what this WordPress is made of.
 *
 * `surface` names one part: runtime, plugins, themes, content, users, abilities; all otherwise.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/discovery.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
require_once ABSPATH . 'wp-admin/includes/plugin.php';
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		$surfaces = WPCodebox\Guest\Command\Discovery::SURFACES;
		$surface  = $arguments->word( 'surface', array( 'all', ...$surfaces ), 'all' );
		$document = array(
			'schema'  => 'wp-codebox/wordpress-runtime-discovery/v1',
			'surface' => $surface,
		);
		foreach ( 'all' === $surface ? $surfaces : array( $surface ) as $name ) {
			$document[ $name ] = ( new WPCodebox\Guest\Command\Discovery() )->surface( $name );
		}
		return $document;
	}
);
