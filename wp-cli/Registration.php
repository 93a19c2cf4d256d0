<?php
/**
 * Registers the commands.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * One class per noun below `wp codebox`. The docblock of a command is its interface.
 */
final class Registration {

	/**
	 * Wires the commands.
	 *
	 * @param Services     $services     The work.
	 * @param Capabilities $capabilities Permission of `--user`.
	 * @param SchemaStore  $schemas      Input schemas.
	 */
	public function __construct(
		private readonly Services $services,
		private readonly Capabilities $capabilities,
		private readonly SchemaStore $schemas
	) {}

	/** Registers all of them. */
	public function register(): void {
		$console   = new Console();
		$boundary  = new Boundary( $console, $this->capabilities );
		$table     = new Table();
		$view      = new ArtifactView( $console, $table, $this->services );
		$approval  = new Approval( $view, $this->services );
		$decisions = new ArtifactDecisions( $boundary, $console, $table, $view, $approval, $this->services );
		$reviews   = new ReviewCommands( $boundary, $console, $view, $approval, $this->services );
		$transfers = new TransferCommands( $boundary, $console, $view, $this->services );
		$report    = new RunReport( $table );
		$flags     = new TaskFlags( $this->schemas, $this->services->code );
		$group     = new GroupReport( $console, $table );
		$task      = new RunAgentTaskCommand(
			$boundary,
			$console,
			$this->services,
			$flags,
			new StagedPrograms(),
			new SecretFlags(),
			$report,
			$table
		);
		$events    = new RunEventsCommand( $boundary, $console, $table, $report, $this->services );

		WP_CLI::add_command( 'codebox', CodeboxNamespace::class );
		WP_CLI::add_command( 'codebox run-agent-task', $task );
		WP_CLI::add_command( 'codebox run-agent-task-batch', new BatchCommand( $boundary, $this->services, $flags, $group ) );
		WP_CLI::add_command( 'codebox run-agent-task-fanout', new FanoutCommand( $boundary, $this->services, $flags, $group ) );
		WP_CLI::add_command( 'codebox runs', new RunsCommand( $boundary, $console, $table, $report, $this->services ) );
		WP_CLI::add_command( 'codebox runs events', $events );
		WP_CLI::add_command( 'codebox artifacts', new ArtifactsCommand( $boundary, $console, $table, $view, $this->services ) );
		WP_CLI::add_command( 'codebox artifacts preflight-apply', [ $decisions, 'preflight_apply' ] );
		WP_CLI::add_command( 'codebox artifacts apply', [ $decisions, 'apply' ] );
		WP_CLI::add_command( 'codebox artifacts discard', [ $decisions, 'discard' ] );
		WP_CLI::add_command( 'codebox artifacts review', [ $reviews, 'review' ] );
		WP_CLI::add_command( 'codebox artifacts stage-apply', [ $reviews, 'stage_apply' ] );
		WP_CLI::add_command( 'codebox artifacts export', [ $transfers, 'export' ] );
		WP_CLI::add_command( 'codebox artifacts import', [ $transfers, 'import' ] );
		WP_CLI::add_command( 'codebox artifacts reimport', [ $transfers, 'reimport' ] );
		WP_CLI::add_command( 'codebox artifacts replay', new ReplayCommand( $boundary, $console, $table, $this->services ) );
		WP_CLI::add_command( 'codebox audit', new AuditCommand( $boundary, $console, $table, $this->services ) );
		WP_CLI::add_command( 'codebox commands', new CommandsCommand( $boundary, $table, $this->services ) );
		WP_CLI::add_command( 'codebox policy', new PolicyCommand( $boundary, $console, $table, $this->services ) );
		WP_CLI::add_command( 'codebox gc', new GcCommand( $boundary, $console, $table, $this->services ) );
		WP_CLI::add_command( 'codebox doctor', new DoctorCommand( $boundary, $console, $table, $this->services ) );
	}
}
