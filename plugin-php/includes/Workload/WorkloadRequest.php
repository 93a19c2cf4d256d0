<?php
/**
 * Converts a workload to a run request for the PHP extension.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Workload;

use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Policy;
use WPCodebox\Requester;
use WPCodebox\Run\MountPlan;
use WPCodebox\Run\RequesterShare;
use WPCodebox\Run\RunRequest;
use WPCodebox\Run\TaskLimits;
use WPCodebox\TaskInput\StagedFiles;

defined( 'ABSPATH' ) || exit;

/**
 * The request has no agent. It holds the sandbox open for as long as the wall clock limit of the site allows; its policy
 * allows exactly the commands of the workload, and no network.
 */
final class WorkloadRequest {

	/** Lifetime of the sandbox when the site sets no wall clock limit, in milliseconds. */
	private const TTL_MS = 900000;

	/**
	 * Creates the builder with its dependencies.
	 *
	 * @param Site           $site   Site the plugin runs on.
	 * @param MountPlan      $mounts Resolves mounts.
	 * @param StagedFiles    $files  Checks the files of this host that a sandbox gets.
	 * @param TaskLimits     $limits Resolves limits.
	 * @param RequesterShare $shares Limits what the requester may have.
	 */
	public function __construct(
		private readonly Site $site,
		private readonly MountPlan $mounts,
		private readonly StagedFiles $files,
		private readonly TaskLimits $limits,
		private readonly RequesterShare $shares
	) {}

	/**
	 * Builds the request.
	 *
	 * @param array<string, mixed> $input     Workload: `mounts`, `staged_files`, `metadata`.
	 * @param string               $goal      What the run does, one sentence; shown in lists of runs.
	 * @param list<string>         $commands  Commands that the policy lists.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure When a mount or file may not be used.
	 */
	public function build( array $input, string $goal, array $commands, Authority $authority ): RunRequest {
		$limits = $this->limits->resolve( [] );
		$host   = [
			'site'       => $this->site->id(),
			'wordpress'  => $this->site->wordpress(),
			'denied'     => $this->site->denied(),
			'code_roots' => $this->site->known_roots(),
			'provenance' => [
				'requester' => Requester::of_call( $this->site, $authority ),
				'wordpress' => get_bloginfo( 'version' ),
				'plugin'    => \WPCodebox\VERSION,
			],
			'limits'     => $limits,
			'policy'     => Policy::defaults( $commands ),
			'mounts'     => empty( $input['mounts'] ) ? [] : $this->mounts->rows( [ 'mounts' => $input['mounts'] ] ),
			'hold'       => [ 'ttl_ms' => (int) ( $limits['wall_clock_ms'] ?? self::TTL_MS ) ],
		] + $this->shares->fields( $authority );
		$staged = $this->files->rows( $input['staged_files'] ?? [], $authority );
		if ( [] !== $staged ) {
			$host['staged_files']               = $staged;
			$host['provenance']['staged_files'] = array_column( $staged, 'target' );
		}
		$roots = $this->site->allowed_roots( $authority );
		if ( null !== $roots ) {
			$host['allowed_roots'] = $roots;
		}
		$task = [ 'goal' => $goal ];
		if ( ! empty( $input['metadata'] ) ) {
			$task['metadata'] = (array) $input['metadata'];
		}
		return new RunRequest( $task, $host );
	}
}
