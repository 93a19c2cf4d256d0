<?php
/**
 * Registers the commands.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WP_CLI;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * One class per noun below `wp codebox`. WP-CLI reads the help text of a command from its docblock.
 */
final class Registration {

	/**
	 * Creates the registration with its dependencies.
	 *
	 * @param Services     $services     Service objects of the plugin.
	 * @param Capabilities $capabilities Permission checks for `--user`.
	 */
	public function __construct(
		private readonly Services $services,
		private readonly Capabilities $capabilities
	) {}

	/** Registers all commands. */
	public function register(): void {
		$console    = new Console();
		$shared     = [ new Boundary( $console, $this->capabilities ), $console, new Table(), $this->services ];
		$decisions  = new ArtifactDecisions( ...$shared );
		$rollbacks  = new RollbackCommands( ...$shared );
		$reviews    = new ReviewCommands( ...$shared );
		$descriptor = new DescriptorCommand( ...$shared );
		$transfers  = new TransferCommands( ...$shared );
		$runtime    = new RuntimeCommands( ...$shared );
		$workloads  = new WorkloadCommands( ...$shared );

		WP_CLI::add_command( 'codebox', CodeboxNamespace::class );
		WP_CLI::add_command( 'codebox run-agent-task', new RunAgentTaskCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox run-agent-task-batch', new BatchCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox run-agent-task-fanout', new FanoutCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox run-runtime-task', [ $runtime, 'run_runtime_task' ] );
		WP_CLI::add_command( 'codebox run-runtime-package', [ $runtime, 'run_runtime_package' ] );
		WP_CLI::add_command( 'codebox run-wordpress-workload', [ $workloads, 'run_wordpress_workload' ] );
		WP_CLI::add_command( 'codebox run-fuzz-suite', [ $workloads, 'run_fuzz_suite' ] );
		WP_CLI::add_command( 'codebox resolve-runtime-requirements', [ $runtime, 'resolve_runtime_requirements' ] );
		WP_CLI::add_command( 'codebox runs', new RunsCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox runs events', new RunEventsCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox artifacts', new ArtifactsCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox artifacts preflight-apply', [ $decisions, 'preflight_apply' ] );
		WP_CLI::add_command( 'codebox artifacts apply', [ $decisions, 'apply' ] );
		WP_CLI::add_command( 'codebox artifacts rollback', [ $rollbacks, 'rollback' ] );
		WP_CLI::add_command( 'codebox artifacts discard', [ $rollbacks, 'discard' ] );
		WP_CLI::add_command( 'codebox artifacts review', [ $reviews, 'review' ] );
		WP_CLI::add_command( 'codebox artifacts stage-apply', [ $reviews, 'stage_apply' ] );
		WP_CLI::add_command( 'codebox artifacts export', [ $transfers, 'export' ] );
		WP_CLI::add_command( 'codebox artifacts import', [ $transfers, 'import' ] );
		WP_CLI::add_command( 'codebox artifacts reimport', [ $transfers, 'reimport' ] );
		WP_CLI::add_command( 'codebox artifacts download', [ new DownloadCommand( ...$shared ), 'download' ] );
		WP_CLI::add_command( 'codebox artifacts history', [ new HistoryCommand( ...$shared ), 'history' ] );
		WP_CLI::add_command( 'codebox artifacts replay', new ReplayCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox runtime descriptor', [ $descriptor, 'descriptor' ] );
		WP_CLI::add_command( 'codebox wordpress-fuzz-runtime-contract', [ $descriptor, 'fuzz_contract' ] );
		WP_CLI::add_command( 'codebox browser-session', new BrowserSessionCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox audit', new AuditCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox commands', new CommandsCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox policy', new PolicyCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox browser-assets', new BrowserAssetsCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox gc', new GcCommand( ...$shared ) );
		WP_CLI::add_command( 'codebox doctor', new DoctorCommand( ...$shared ) );
	}
}
