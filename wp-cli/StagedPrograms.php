<?php
/**
 * Host programs that the operator mounts into the guest.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Native\Run;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The guest sees neither the operator's home directory nor the site. When a command line of the operator
 * names a host file by its absolute path, that file is mounted read-only into the guest and the command line
 * is rewritten to the guest path. Only the operator can do this; files that look like secrets are refused.
 */
final class StagedPrograms {

	private const TARGET = '/run/codebox/staged/';

	/** Host directories whose files are never mounted: the guest has its own, or they contain no programs of the operator. */
	private const OWN = '#^/(usr|bin|sbin|lib|lib32|lib64|libx32|dev|proc|sys|workspace|wordpress|run/codebox|opt/codebox)(/|$)#';

	private const SECRET = '#(^|/)(\.[^/]*|id_[^/]*|wp-config[^/]*\.php|[^/]*\.(pem|key|p12|pfx|kdbx))$|/\.(ssh|gnupg|aws|kube|docker)/#i';

	/**
	 * Guest path of each file to mount, by host path.
	 *
	 * @var array<string, string>
	 */
	private array $staged = [];

	/**
	 * Replaces host files in the command lines of a task (agent and checks) by the guest paths of their mounts.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed> Task input with guest paths.
	 * @throws Failure `wp_codebox_mount_denied` for a file that looks like a secret.
	 */
	public function rewrite( array $input ): array {
		if ( isset( $input['agent_command'] ) ) {
			$input['agent_command'] = $this->line( (string) $input['agent_command'] );
		}
		if ( isset( $input['checks'] ) ) {
			$input['checks'] = array_map( fn( string $line ): string => $this->line( $line ), (array) $input['checks'] );
		}
		return $input;
	}

	/**
	 * Returns the files to mount, in the form that the extension takes.
	 *
	 * @return list<array{source: string, target: string}>
	 */
	public function files(): array {
		$files = [];
		foreach ( $this->staged as $source => $target ) {
			$files[] = [
				'source' => (string) $source,
				'target' => $target,
			];
		}
		return $files;
	}

	/**
	 * Rewrites one command line; returns it unchanged when it names no host file.
	 *
	 * @param string $line Command line.
	 */
	private function line( string $line ): string {
		$tokens  = Run::splitCommand( $line );
		$changed = array_map( fn( string $token ): string => $this->token( $token ), $tokens );
		return $changed === $tokens ? $line : implode( ' ', array_map( [ $this, 'quote' ], $changed ) );
	}

	/**
	 * Returns the guest path of a token that names a host file, and other tokens unchanged.
	 *
	 * @param string $token Token of a command line.
	 */
	private function token( string $token ): string {
		if ( ! str_starts_with( $token, '/' ) || 1 === preg_match( self::OWN, $token ) || ! is_file( $token ) ) {
			return $token;
		}
		$real = (string) realpath( $token );
		if ( 1 === preg_match( self::SECRET, $token ) || 1 === preg_match( self::SECRET, $real ) ) {
			throw Failure::because(
				ErrorCode::MountDenied,
				/* translators: %s: path. */
				Sentence::of( __( 'The path of the file %s looks like that of a secret, so the file is not put into the sandbox; leave it out of the command line, or name another file.', 'codebox' ), basename( $token ) )
			);
		}
		if ( 1 === preg_match( self::OWN, $real ) ) {
			return $real;
		}
		if ( ! isset( $this->staged[ $real ] ) ) {
			$name                  = (string) preg_replace( '/[^A-Za-z0-9._-]/', '_', basename( $token ) );
			$this->staged[ $real ] = self::TARGET . count( $this->staged ) . '-' . $name;
		}
		return $this->staged[ $real ];
	}

	/**
	 * Quotes a token for a POSIX shell.
	 *
	 * @param string $token Token of a command line.
	 */
	private function quote( string $token ): string {
		return 1 === preg_match( '#^[A-Za-z0-9_./:=@%+,-]+$#', $token ) ? $token : "'" . str_replace( "'", "'\\''", $token ) . "'";
	}
}
