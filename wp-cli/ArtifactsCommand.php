<?php
/**
 * `wp codebox artifacts`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleTrust;
use WPCodebox\Capabilities;

defined( 'ABSPATH' ) || exit;

/**
 * Reviews, applies and discards the changes that agents made.
 *
 * Each command accepts an artifact's run id, its artifact id, or a unique prefix of either.
 */
final class ArtifactsCommand extends Command {

	/**
	 * Lists the bundles of this site, newest first.
	 *
	 * ## OPTIONS
	 *
	 * [--page=<number>]
	 * : Page number, starting at 1.
	 *
	 * [--per-page=<number>]
	 * : Bundles per page.
	 *
	 * [--format=<format>]
	 * : Output format; `ids` prints run ids.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: id, run_id, artifact_id, created_at, outcome, state, changed_files, summary, directory, valid_manifest.
	 *
	 * [--porcelain]
	 * : Print only run ids, one per line.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts list --format=json --fields=run_id,outcome
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function list( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts list',
			Capabilities::REVIEW,
			'wp-codebox/list-artifacts',
			$flags,
			function () use ( $flags ): int {
				$list = $this->services->artifacts->list(
					[
						'page'     => Quantity::whole( 'page', (string) ( $flags['page'] ?? 1 ), 1, 999999 ),
						'per_page' => Quantity::whole( 'per-page', (string) ( $flags['per-page'] ?? ArtifactService::PER_PAGE ), 1, 999999 ),
					]
				);
				if ( ! empty( $flags['porcelain'] ) ) {
					foreach ( $list['artifacts'] as $row ) {
						Console::print( (string) $row['run_id'] );
					}
					return 0;
				}
				$this->table->print( $list['artifacts'], in_array( $flags['format'], [ 'json', 'yaml' ], true ) ? [ 'id', 'run_id', 'created_at', 'outcome', 'state', 'summary' ] : [ 'run_id', 'created_at', 'outcome', 'state', 'summary' ], 'run_id', $flags );
				return 0;
			}
		);
	}

	/**
	 * Shows one bundle, its state and its history.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--format=<format>]
	 * : Output format. table, csv and count list the changed files.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: status, path, insertions, deletions, type, relativePath, beforeSha256, afterSha256.
	 *
	 * [--porcelain]
	 * : Print only the artifact id.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts get run_0123 --format=json
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function get( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts get',
			Capabilities::REVIEW,
			'wp-codebox/get-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$answer = $this->services->artifacts->get( $this->services->schemas->valid( 'artifact-reference-input', JsonInput::artifact( $args, $flags ) ) );
				$this->show( $answer, $flags );
				return 0;
			}
		);
	}

	/**
	 * Shows one bundle and verifies it. Exit status 1 when verification fails.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--input-file=<file>]
	 * : File with the input as a JSON object of the ability's input schema; - reads STDIN. Flags override it.
	 *
	 * [--input-json=<json>]
	 * : Same JSON object, given inline.
	 *
	 * [--format=<format>]
	 * : Output format. table, csv and count list the violations.
	 * ---
	 * default: table
	 * options:
	 *   - table
	 *   - json
	 *   - yaml
	 *   - csv
	 *   - ids
	 *   - count
	 * ---
	 *
	 * [--fields=<fields>]
	 * : Columns: code, path, message.
	 *
	 * [--porcelain]
	 * : Print only the sha256 of the manifest, for --manifest-sha256 of apply.
	 *
	 * ## EXAMPLES
	 *
	 *     $ wp codebox artifacts inspect run_0123
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function inspect( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts inspect',
			Capabilities::REVIEW,
			'wp-codebox/inspect-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$answer = $this->services->artifacts->inspect( $this->services->schemas->valid( 'artifact-reference-input', JsonInput::artifact( $args, $flags ) ) );
				$valid  = true === $answer['verification']['valid'];
				if ( ! empty( $flags['porcelain'] ) ) {
					Console::print( (string) ( $answer['manifest_sha256'] ?? '' ) );
					return $valid ? 0 : 1;
				}
				$this->console->say( sprintf( 'The bundle %s (%s).', $valid ? 'verifies' : 'does not verify', BundleTrust::words( (array) ( $answer['verification']['signature'] ?? [] ) ) ) );
				if ( in_array( $flags['format'], [ 'json', 'yaml' ], true ) ) {
					$this->console->document( $answer, $flags['format'] );
				} elseif ( ! $valid || 'table' !== $flags['format'] ) {
					$this->table->print( $answer['verification']['violations'], [ 'code', 'path', 'message' ], 'code', $flags );
				} else {
					$this->table->print( ArtifactService::changed_files( $answer['artifact'] ), [ 'status', 'path', 'insertions', 'deletions' ], 'path', array_diff_key( $flags, [ 'fields' => 1 ] ) );
				}
				return $valid ? 0 : 1;
			}
		);
	}

	/**
	 * Prints the patch of all or of selected files without changing a byte.
	 *
	 * ## OPTIONS
	 *
	 * [<id>]
	 * : Run id, artifact id, or the beginning of either.
	 *
	 * [--artifact-id=<id>]
	 * : Same as the argument <id>.
	 *
	 * [--files=<paths>]
	 * : Limit the patch to these changed files, separated by commas or as a JSON list.
	 *
	 * ## EXAMPLES
	 *
	 *     # Apply a change by hand.
	 *     $ wp codebox artifacts diff run_0123 | git apply
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 */
	public function diff( array $args, array $flags ): void {
		$this->boundary->enter(
			'codebox artifacts diff',
			Capabilities::REVIEW,
			'wp-codebox/get-artifact',
			$flags,
			function () use ( $args, $flags ): int {
				$input = JsonInput::artifact( $args, $flags );
				if ( isset( $flags['files'] ) ) {
					$input['files'] = ( new Approval( $this->services ) )->paths( $input, FlagList::split( '--files', (string) $flags['files'] ) );
				}
				$this->console->data( $this->services->artifacts->diff( $input ) );
				return 0;
			}
		);
	}

	/**
	 * Prints one bundle: as a document, or as one row per changed file; with `--porcelain` only its artifact id.
	 *
	 * @param array<string, mixed> $answer Result of the ability.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 */
	private function show( array $answer, array $flags ): void {
		if ( ! empty( $flags['porcelain'] ) || 'ids' === $flags['format'] ) {
			Console::print( (string) ( $answer['artifact']['artifact_id'] ?? '' ) );
			return;
		}
		$artifact = $answer['artifact'];
		$this->console->say( sprintf( 'Run %s of %s: %s', (string) $artifact['run_id'], (string) ( $artifact['created_at'] ?? 'unknown time' ), (string) ( $artifact['review']['summary'] ?? $artifact['summary'] ?? '' ) ) );
		array_map( [ $this->console, 'say' ], HistoryReport::lines( $answer ) );
		foreach ( (array) ( $artifact['review']['riskFlags'] ?? [] ) as $flag ) {
			$name = explode( ':', (string) $flag, 2 )[0];
			$this->console->say( sprintf( 'Look closer: %s %s', $flag, (string) ( $artifact['review']['riskSentences'][ $name ] ?? '' ) ) );
		}
		$this->files( $answer, ArtifactService::changed_files( $artifact ), $flags );
	}
}
