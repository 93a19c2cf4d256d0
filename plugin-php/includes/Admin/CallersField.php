<?php
/**
 * Field of the settings page for trusted callers: application passwords with granted scopes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Connector\CallerGrants;
use WPCodebox\Connector\Scope;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Prints one row per application password of the installation, with one checkbox per scope (right) that can be granted to
 * it. Uses no script and prints no secret.
 */
final class CallersField {

	/** Maximum number of rows; application passwords with a grant always get a row, also beyond it. */
	private const MOST = 200;

	/**
	 * Creates the field with its dependencies.
	 *
	 * @param Settings $settings Effective settings.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Registers the field on the settings page.
	 *
	 * @param string $page Slug of the settings page.
	 */
	public function add( string $page ): void {
		add_settings_field( Settings::TRUSTED_CALLERS, __( 'Trusted callers', 'codebox' ), [ $this, 'render' ], $page, 'trust' );
	}

	/** Prints the table of application passwords and their scopes. */
	public function render(): void {
		$stored = array_filter( (array) get_site_option( Settings::TRUSTED_CALLERS, [] ), 'is_array' );
		$rows   = ( new CallerGrants() )->passwords( self::MOST, array_map( 'strval', array_keys( $stored ) ) );
		printf( '<p class="description">%s</p>', esc_html__( 'Tick what a request with an application password may do through Codebox. Users who may run tasks or review bundles need no tick for what these rights already allow.', 'codebox' ) );
		// Without a ticked checkbox the browser would omit the field, which looks the same as a form without
		// this field.
		printf( '<input type="hidden" name="%s" value="">', esc_attr( Settings::TRUSTED_CALLERS ) );
		if ( [] === $rows ) {
			printf( '<p>%s</p>', esc_html__( 'No user has an application password.', 'codebox' ) );
			return;
		}
		echo '<table class="widefat striped"><thead><tr>';
		foreach ( array_merge( [ __( 'User', 'codebox' ), __( 'Application password', 'codebox' ), __( 'Last used', 'codebox' ) ], array_values( $this->labels() ) ) as $title ) {
			printf( '<th scope="col">%s</th>', esc_html( $title ) );
		}
		echo '</tr></thead><tbody>';
		foreach ( $rows as $row ) {
			printf( '<tr><th scope="row">%s</th><td>%s<br><code>%s</code></td><td>%s</td>', esc_html( $row['user'] ), esc_html( $row['name'] ), esc_html( $row['uuid'] ), esc_html( '' === $row['used'] ? __( 'never', 'codebox' ) : $row['used'] ) );
			foreach ( $this->labels() as $scope => $label ) {
				printf(
					'<td><input type="checkbox" name="%1$s[%2$s][]" value="%3$s" aria-label="%4$s"%5$s></td>',
					esc_attr( Settings::TRUSTED_CALLERS ),
					esc_attr( $row['uuid'] ),
					esc_attr( $scope ),
					/* translators: 1: what the application password may do, 2: name of an application password, 3: login name. */
					esc_attr( sprintf( __( '%1$s: %2$s of %3$s', 'codebox' ), $label, $row['name'], $row['user'] ) ),
					checked( in_array( $scope, (array) ( $stored[ $row['uuid'] ] ?? [] ), true ), true, false )
				);
			}
			echo '</tr>';
		}
		echo '</tbody></table>';
	}

	/**
	 * Returns the label of each scope that can be granted.
	 *
	 * @return array<string, string>
	 */
	private function labels(): array {
		return [
			Scope::RequestConnector->value     => __( 'Request connectors', 'codebox' ),
			Scope::WriteArtifacts->value       => __( 'Import bundles', 'codebox' ),
			Scope::CreateBrowserSession->value => __( 'Create browser sessions', 'codebox' ),
		];
	}
}
