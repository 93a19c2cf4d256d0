<?php
/**
 * Plugins of a browser session that are installed from an address.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Takes only addresses of allowed hosts; this site's own host is the only one by default. */
final class PluginUrls {

	/**
	 * Returns the step that installs a plugin.
	 *
	 * @param array<string, mixed> $plugin Entry of `browser_plugins`.
	 * @param int                  $index  Number of the entry.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_browser_url_invalid`, `_url_insecure`, `wp_codebox_browser_plugin_host_not_allowed`.
	 */
	public static function step( array $plugin, int $index ): array {
		$url   = (string) $plugin['url'];
		$field = "browser_plugins[$index]";
		/**
		 * Filters whether a plugin may be loaded without encryption from a host that is not this machine.
		 *
		 * @param bool   $allowed Whether it may; default false.
		 * @param string $url     Address.
		 * @param int    $index   Number of the plugin.
		 */
		$http = true === apply_filters( 'wp_codebox_browser_plugin_allow_http', false, $url, $index );
		PlaygroundUrls::checked( $field . '.url', $url, $http );
		self::check_host( $url, $index, $field );
		$sha256 = strtolower( (string) ( $plugin['sha256'] ?? '' ) );
		if ( '' !== $sha256 && 1 !== preg_match( '/^[0-9a-f]{64}$/D', $sha256 ) ) {
			throw Failure::invalid_input( __( 'The "sha256" of a plugin must have 64 hex digits.', 'codebox' ), [], [ 'field' => $field . '.sha256' ] );
		}
		return [
			'step'       => 'installPlugin',
			'pluginData' => [
				'resource' => 'url',
				'url'      => $url,
			] + ( '' === $sha256 ? [] : [ 'sha256' => $sha256 ] ),
			'options'    => [ 'activate' => (bool) ( $plugin['activate'] ?? true ) ],
		];
	}

	/**
	 * Fails when the host is not allowed.
	 *
	 * @param string $url   Address.
	 * @param int    $index Number of the plugin.
	 * @param string $field Path of the field.
	 */
	private static function check_host( string $url, int $index, string $field ): void {
		$default = [ (string) wp_parse_url( home_url(), PHP_URL_HOST ) ];
		/**
		 * Filters the hosts from which a sandbox in a browser may install plugins. The engine of this plugin loads files of this
		 * site only; other hosts need another engine.
		 *
		 * @param list<string> $hosts Hosts; default the one of this site.
		 * @param string       $url   Address.
		 * @param int          $index Number of the plugin.
		 */
		$hosts = (array) apply_filters( 'wp_codebox_browser_plugin_allowed_hosts', $default, $url, $index );
		/**
		 * Filters the hosts of packages of the runtime, after those of plugins.
		 *
		 * @param list<string> $hosts Hosts.
		 * @param string       $url   Address.
		 * @param int          $index Number of the plugin.
		 */
		$hosts = apply_filters( 'wp_codebox_browser_runtime_plugin_package_allowed_hosts', $hosts, $url, $index );
		if ( ! PlaygroundUrls::is_on( $url, $hosts ) ) {
			throw Failure::because(
				ErrorCode::BrowserPluginHostNotAllowed,
				__( 'A plugin of the session is on a host that this site does not allow.', 'codebox' ),
				[ __( 'Install the plugin on this site and name its slug, or allow the host with the filter wp_codebox_browser_plugin_allowed_hosts.', 'codebox' ) ],
				[ 'field' => $field . '.url' ]
			);
		}
	}
}
