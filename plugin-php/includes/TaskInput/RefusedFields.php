<?php
/**
 * Public fields of a task that this version cannot carry out.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Refuses each of these fields by its name, with the reason and the alternative. An empty value asks for nothing
 * and is accepted.
 */
final class RefusedFields {

	/**
	 * Fails when the task has a field that this version cannot carry out.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @throws Failure `wp_codebox_input_invalid`, `wp_codebox_wordpress_invalid`.
	 */
	public function check( array $input ): void {
		if ( ! empty( $input['artifacts_path'] ) ) {
			throw self::artifacts_path();
		}
		if ( ! empty( $input['debug']['wp_codebox_bin'] ) ) {
			throw self::program( 'debug.wp_codebox_bin' );
		}
		if ( ! empty( $input['runtime_overlays'] ) ) {
			throw self::refusal( 'runtime_overlays', __( 'a task cannot change files of WordPress itself in the sandbox', 'codebox' ), __( 'Use "component_contracts" for plugins and "mounts" for other code.', 'codebox' ) );
		}
		if ( ! empty( $input['runtime_state_mounts'] ) ) {
			throw self::refusal( 'runtime_state_mounts', __( 'a sandbox writes into no directory of the host, so no state remains after its end', 'codebox' ), __( 'Use "mounts": what the sandbox writes there is in the bundle.', 'codebox' ) );
		}
		$this->check_version( trim( (string) ( $input['wp'] ?? '' ) ) );
	}

	/** Returns the failure for a task or call that chooses where bundles are. */
	public static function artifacts_path(): Failure {
		return self::refusal(
			'artifacts_path',
			__( 'only the operator chooses where bundles are stored', 'codebox' ),
			__( 'Leave the field out. Bundles are stored in the directory that wp_codebox.state_dir in php.ini names; export-artifact-bundle copies a bundle elsewhere.', 'codebox' )
		);
	}

	/**
	 * Returns the failure for a call that chooses a program of the host.
	 *
	 * @param string $field Name of the field.
	 */
	public static function program( string $field ): Failure {
		return self::refusal( $field, __( 'only the operator chooses the programs that start a sandbox', 'codebox' ), __( 'Leave the field out. The settings wp_codebox.runner and wp_codebox.launcher in php.ini name the programs.', 'codebox' ) );
	}

	/**
	 * Returns the failure for a field.
	 *
	 * @param string $field   Name of the field.
	 * @param string $reason  Why it is refused; part of a sentence.
	 * @param string $instead What to use instead; one sentence.
	 */
	public static function refusal( string $field, string $reason, string $instead ): Failure {
		return Failure::invalid_input(
			/* translators: 1: name of a field, 2: reason. */
			Sentence::of( __( '%1$s is not accepted: %2$s.', 'codebox' ), $field, $reason ),
			[ $instead ],
			[ 'field' => $field ]
		);
	}

	/**
	 * Fails when the task asks for another WordPress than the one of this site.
	 *
	 * @param string $asked Version as the task gives it.
	 */
	private function check_version( string $asked ): void {
		$own = (string) get_bloginfo( 'version' );
		if ( in_array( $asked, [ '', 'latest', $own ], true ) || str_starts_with( $own, $asked . '.' ) || str_starts_with( $own, $asked . '-' ) ) {
			return;
		}
		throw Failure::because(
			ErrorCode::WordpressInvalid,
			/* translators: 1: version asked for, 2: version of the site. */
			Sentence::of( __( 'The WordPress version "%1$s" is not available: the sandbox gets the WordPress of this site, which is %2$s.', 'codebox' ), $asked, $own ),
			[ __( 'Leave "wp" out, or set it to "latest"; the command "wp-codebox run --wp VERSION" takes other versions from "wp-codebox wordpress list".', 'codebox' ) ],
			[ 'field' => 'wp' ]
		);
	}
}
