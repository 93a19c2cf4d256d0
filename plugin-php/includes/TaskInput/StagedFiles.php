<?php
/**
 * Host files that a task shows to its sandbox.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A caller may stage files of the directories that the caller may mount. The sandbox only reads them. The supervisor
 * checks each source and target again when it opens the file.
 */
final class StagedFiles {

	/** Files that hold credentials, wherever they are. */
	private const SECRET = '#(^|/)(\.env[^/]*|\.npmrc|\.pypirc|\.netrc|auth\.json|id_[^/]*|wp-config[^/]*\.php|[^/]*\.(pem|key|p12|pfx|kdbx))$|/\.(git|ssh|gnupg|aws|kube|docker)/#i';

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Site $site Site the plugin runs on.
	 */
	public function __construct( private readonly Site $site ) {}

	/**
	 * Returns the files of a task, in the form that the extension takes.
	 *
	 * @param mixed     $rows      Field `staged_files`: rows {source, target, metadata}.
	 * @param Authority $authority User or operator the call runs as.
	 * @return list<array{source: string, target: string}>
	 * @throws Failure `wp_codebox_mount_denied`, `wp_codebox_mount_source_invalid`, `wp_codebox_input_invalid`.
	 */
	public function rows( mixed $rows, Authority $authority ): array {
		$files = [];
		foreach ( array_values( is_array( $rows ) ? $rows : [] ) as $index => $row ) {
			$source = is_array( $row ) && is_string( $row['source'] ?? null ) ? trim( $row['source'] ) : '';
			$target = is_array( $row ) && is_string( $row['target'] ?? null ) ? trim( $row['target'] ) : '';
			if ( '' === $source || '' === $target ) {
				throw RefusedFields::refusal( "staged_files[$index]", __( 'it needs "source" and "target"', 'codebox' ), __( 'Give the absolute path of a file of this host as "source", and a path below /workspace or /run/codebox/staged as "target".', 'codebox' ) );
			}
			$files[] = [
				'source' => $this->source( $source, $index, $authority ),
				'target' => $target,
			];
		}
		return $files;
	}

	/**
	 * Returns the canonical path of a file that the caller may stage.
	 *
	 * @param string    $source    Path as the caller gave it.
	 * @param int       $index     Index of the row.
	 * @param Authority $authority User or operator the call runs as.
	 */
	private function source( string $source, int $index, Authority $authority ): string {
		$real  = str_starts_with( $source, '/' ) ? realpath( $source ) : false;
		$roots = $this->site->allowed_roots( $authority );
		// The error must not reveal whether a file outside of these directories exists.
		if ( null !== $roots && ! Site::is_within( false === $real ? $source : $real, $roots ) ) {
			/* translators: %d: index of a row. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The source of staged_files[%d] lies outside the installed plugins and themes and the directories of wp_codebox.mount_roots in php.ini.', 'codebox' ), $index ) );
		}
		if ( false !== $real && ( $this->site->refuses( $real ) || 1 === preg_match( self::SECRET, $source ) || 1 === preg_match( self::SECRET, $real ) ) ) {
			/* translators: %d: index of a row. */
			throw Failure::because( ErrorCode::MountDenied, Sentence::of( __( 'The source of staged_files[%d] is in this site, a directory of Codebox or a system directory, or its name looks like that of a file with secrets.', 'codebox' ), $index ) );
		}
		if ( false === $real || ! is_file( $real ) ) {
			/* translators: %d: index of a row. */
			throw Failure::because( ErrorCode::MountSourceInvalid, Sentence::of( __( 'The source of staged_files[%d] is not a file; give the absolute path of a file of this host.', 'codebox' ), $index ) );
		}
		return $real;
	}
}
