<?php
/**
 * Assets of browser sessions for the tests, without a core archive.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Tests;

use WPCodebox\Browser\SessionAssets;

final class BrowserAssets implements SessionAssets {

	/** Digest of the WordPress that the sandbox gets. */
	public string $core = 'c0';

	/** Part of the digest of each plugin and theme. */
	public string $code = '';

	public function contract( string $scope, string $session_id ): array {
		return [
			'client_module_url' => 'http://localhost/assets/client.js',
			'remote_url'        => 'http://localhost/assets/remote.html',
			'cors_proxy_url'    => '',
			'isolation'         => 'opaque',
			'provenance'        => [ 'php' => '8.3' ],
			'codebox'           => [
				'core'      => [ 'url' => "http://localhost/core?session=$session_id", 'sha256' => $this->core, 'bytes' => 1, 'key' => 'k' ],
				'isolation' => 'opaque',
			],
		];
	}

	public function roots( array $roots, string $session_id ): array {
		return array_map(
			fn( array $root ): array => [
				'target'  => $root['kind'] . 's/' . $root['slug'],
				'path'    => '/wordpress/wp-content/' . $root['kind'] . 's/' . $root['slug'],
				'archive' => [ 'url' => "http://localhost/seed?session=$session_id", 'sha256' => hash( 'sha256', $root['slug'] . $this->code ), 'bytes' => 1 ],
			],
			$roots
		);
	}

	/** Calls the body as an administrator while these assets serve browser sessions. */
	public static function with( Harness $t, callable $body ): mixed {
		$assets = new self();
		$t->as( 'administrator' );
		return $t->filtered( 'wp_codebox_browser_session_assets', static fn(): self => $assets, static fn(): mixed => $body( $assets ) );
	}
}
