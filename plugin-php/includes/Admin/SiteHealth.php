<?php
/**
 * Site Health.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\ExtensionGate;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * One direct test (is the extension there and does it fit) and a section of debug
 * information. Neither starts a process.
 */
final class SiteHealth {

	/**
	 * Wires the tests.
	 *
	 * @param ExtensionGate $gate Extension check.
	 */
	public function __construct( private readonly ExtensionGate $gate ) {}

	/** Registers the hooks. */
	public function register(): void {
		add_filter( 'site_status_tests', [ $this, 'tests' ] );
		add_filter( 'debug_information', [ $this, 'debug' ] );
	}

	/**
	 * Adds our test.
	 *
	 * @param mixed $tests Tests so far.
	 * @return mixed
	 */
	public function tests( mixed $tests ): mixed {
		if ( is_array( $tests ) ) {
			$tests['direct']['wp_codebox_extension'] = [
				'label' => __( 'WP Codebox extension', 'wp-codebox' ),
				'test'  => [ $this, 'extension_test' ],
			];
		}
		return $tests;
	}

	/**
	 * The test.
	 *
	 * @return array<string, mixed>
	 */
	public function extension_test(): array {
		$failure = $this->gate->failure();
		$result  = [
			'label'       => __( 'The WP Codebox extension is loaded and fits the plugin', 'wp-codebox' ),
			'status'      => 'good',
			'badge'       => [
				'label' => 'WP Codebox',
				'color' => 'blue',
			],
			'description' => '<p>' . esc_html__( 'Agents can be run in a sandbox. The command "wp codebox doctor" shows how strongly this host isolates them.', 'wp-codebox' ) . '</p>',
			'actions'     => '',
			'test'        => 'wp_codebox_extension',
		];
		if ( null === $failure ) {
			return $result;
		}
		$result['label']       = __( 'WP Codebox cannot run', 'wp-codebox' );
		$result['status']      = 'critical';
		$result['description'] = '<p>' . esc_html( $failure->getMessage() ) . '</p>';
		foreach ( $failure->hints as $hint ) {
			$result['actions'] .= '<p>' . esc_html( $hint ) . '</p>';
		}
		return $result;
	}

	/**
	 * Adds our section to the debug information.
	 *
	 * @param mixed $info Sections so far.
	 * @return mixed
	 */
	public function debug( mixed $info ): mixed {
		if ( ! is_array( $info ) ) {
			return $info;
		}
		$failure = $this->gate->failure();
		$fields  = [
			'plugin'    => [
				'label' => __( 'Plugin version', 'wp-codebox' ),
				'value' => \WPCodebox\VERSION,
			],
			'extension' => [
				'label' => __( 'Extension', 'wp-codebox' ),
				'value' => null === $failure ? Extension::version() : $failure->getMessage(),
			],
		];
		foreach ( $this->extension_info() as $name => $value ) {
			$fields[ $name ] = [
				'label'   => $name,
				'value'   => is_array( $value ) ? implode( ', ', array_filter( $value, 'is_string' ) ) : (string) $value,
				'private' => str_contains( $name, 'dir' ) || 'mount_roots' === $name,
			];
		}
		$info['wp-codebox'] = [
			'label'  => 'WP Codebox',
			'fields' => $fields,
		];
		return $info;
	}

	/**
	 * Effective configuration of the extension; empty when it cannot be asked.
	 *
	 * @return array<string, mixed>
	 */
	private function extension_info(): array {
		if ( null !== $this->gate->failure() ) {
			return [];
		}
		try {
			return array_filter( Extension::info(), static fn( mixed $value ): bool => is_scalar( $value ) || is_array( $value ) );
		} catch ( Throwable ) {
			return [];
		}
	}
}
