<?php
/**
 * Directory that bundles are read from.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Extension;

defined( 'ABSPATH' ) || exit;

/**
 * Bundles are always written to `sites/<site>/artifacts` of the state directory. A host plugin can make this
 * site read another partition of the same state directory, for example of the blog where the reviewers work.
 * Other directories are refused, and nothing is written to the other partition.
 */
final class ArtifactsRoot {

	/**
	 * Creates the root with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns the name `<site>` of the partition whose bundles are read.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @throws Failure `wp_codebox_artifact_outside_root` when a plugin names an invalid directory.
	 */
	public function partition( array $input = [] ): string {
		if ( ! has_filter( 'wp_codebox_artifacts_root' ) ) {
			return $this->site->id();
		}
		$sites = untrailingslashit( (string) ( Extension::info()['state_dir'] ?? '' ) ) . '/sites/';
		$own   = $sites . $this->site->id() . '/artifacts';
		/**
		 * Filters the directory whose bundles are listed and read. Writes, decisions and applies always use
		 * this site's own partition.
		 *
		 * @param string $root `<state directory>/sites/<site>/artifacts`; any other value must have the same
		 *   form.
		 * @param array<string, mixed> $input Ability input.
		 */
		$root = apply_filters( 'wp_codebox_artifacts_root', $own, $input );
		$root = is_string( $root ) ? untrailingslashit( $root ) : '';
		if ( str_starts_with( $root, $sites ) && 1 === preg_match( '#^([A-Za-z0-9_-]{1,64})/artifacts$#D', substr( $root, strlen( $sites ) ), $found ) ) {
			return $found[1];
		}
		throw Failure::because(
			ErrorCode::ArtifactOutsideRoot,
			__( 'A plugin of this site sets a directory for bundles (artifacts root) that is not the artifacts directory of a site.', 'codebox' ),
			[ __( 'The filter wp_codebox_artifacts_root may only return <state directory>/sites/<site>/artifacts.', 'codebox' ) ]
		);
	}
}
