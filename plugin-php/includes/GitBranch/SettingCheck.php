<?php
/**
 * Validates the setting of the git branch adapter.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\GitBranch;

use WPCodebox\Failure;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/** Validates the setting: returns the value to store, or throws a Failure whose message is for the administrator. */
final class SettingCheck {

	/** Patterns of a valid branch name and of a valid directory in the repository. Git refuses some further names. */
	private const BRANCH    = '#^[A-Za-z0-9_](?:[A-Za-z0-9_./-]{0,198}[A-Za-z0-9_-])?$#D';
	private const DIRECTORY = '#^[^/\p{C}\\\\][^\p{C}\\\\]{0,198}$#uD';

	/**
	 * Creates the check with its dependencies.
	 *
	 * @param Repository $repository Decides which directories may be the repository.
	 */
	public function __construct( private readonly Repository $repository ) {}

	/**
	 * Validates the setting. An empty repository turns the adapter off, unless wp-config.php names one.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<string, string> Fields that are not empty.
	 * @throws Failure `wp_codebox_input_invalid`, `wp_codebox_mount_denied`.
	 */
	public function check( mixed $value ): array {
		if ( null !== $value && ! is_array( $value ) || [] !== array_diff( array_keys( $value ?? [] ), Settings::GIT_BRANCH_FIELDS ) ) {
			/* translators: %s: names of fields. */
			throw Failure::invalid_input( sprintf( __( 'The setting for the git branch must be a map with these fields only: %s.', 'codebox' ), implode( ', ', Settings::GIT_BRANCH_FIELDS ) ) );
		}
		$fields = array_map( static fn( mixed $field ): string => is_string( $field ) ? trim( $field ) : '', $value ?? [] );
		$fields = array_filter( $fields, static fn( string $field ): bool => '' !== $field );
		if ( isset( $fields['repository'] ) ) {
			$fields['repository'] = $this->repository->permitted( $fields['repository'] );
		}
		$branch = $fields['branch'] ?? Repository::BRANCH;
		$base   = $fields['base'] ?? Repository::BASE;
		foreach ( [ strtr( $branch, [ '{run}' => 'run_0' ] ), $base ] as $name ) {
			if ( 1 !== preg_match( self::BRANCH, $name ) || 1 === preg_match( '#\.\.|//|/\.|\.lock(/|$)#', $name ) ) {
				/* translators: %s: name as typed. */
				throw Failure::invalid_input( sprintf( __( '"%s" cannot be the name of a branch; use letters, digits, dash and underscore, with single slashes between them, and begin with a letter or digit.', 'codebox' ), $name ) );
			}
		}
		if ( $branch === $base ) {
			throw Failure::invalid_input( __( 'The branch for approved changes must not be the base branch.', 'codebox' ) );
		}
		$directory = $fields['directory'] ?? '.';
		if ( 1 !== preg_match( self::DIRECTORY, $directory ) || '.' !== $directory && 1 === preg_match( '#(^|/)\.{0,2}(/|$)#', rtrim( $directory, '/' ) ) ) {
			throw Failure::invalid_input( __( 'The directory of the code must be a path inside the repository, for example wp-content/{path}; a single dot means its top directory.', 'codebox' ) );
		}
		foreach ( [ 'author', 'committer' ] as $field ) {
			if ( isset( $fields[ $field ] ) && null === Repository::parsed( $fields[ $field ] ) ) {
				throw Failure::invalid_input( __( 'Author and committer must have the form "Name <mail address>".', 'codebox' ) );
			}
		}
		return $fields;
	}
}
