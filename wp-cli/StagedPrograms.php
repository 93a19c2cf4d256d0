<?php
/**
 * Host programs that the operator mounts into the guest.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * The guest sees neither the operator's home directory nor the site. When a command line of the operator
 * names a host file by its absolute path, that file is mounted read-only into the guest and the command line
 * is rewritten to the guest path. Only the operator can do this; the extension refuses files that look like
 * secrets.
 */
final class StagedPrograms {

	/**
	 * Files to mount, in the form that the extension takes.
	 *
	 * @var list<array{source: string, target: string}>
	 */
	private array $files = [];

	/**
	 * Replaces host files in the command lines of a task (agent and checks) by the guest paths of their mounts.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return array<string, mixed> Task input with guest paths.
	 */
	public function rewrite( array $input ): array {
		$agent       = isset( $input['agent_command'] ) ? [ (string) $input['agent_command'] ] : [];
		$checks      = array_map( 'strval', array_values( (array) ( $input['checks'] ?? [] ) ) );
		$staged      = Run::stageCommands( [ ...$agent, ...$checks ] );
		$this->files = $staged['files'];
		if ( [] !== $agent ) {
			$input['agent_command'] = array_shift( $staged['lines'] );
		}
		if ( [] !== $checks ) {
			$input['checks'] = $staged['lines'];
		}
		return $input;
	}

	/**
	 * Returns the files to mount.
	 *
	 * @return list<array{source: string, target: string}>
	 */
	public function files(): array {
		return $this->files;
	}
}
