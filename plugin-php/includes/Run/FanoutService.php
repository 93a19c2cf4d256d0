<?php
/**
 * Runs several workers in parallel.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Abilities\SchemaStore;
use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Exception;
use WPCodebox\Native\Fanout;
use WPCodebox\Native\GroupSlot;
use WPCodebox\Sentence;
use WPCodebox\TaskInput\Workers;

defined( 'ABSPATH' ) || exit;

/**
 * Runs a plan of workers, each in its own sandbox. The extension defines what a valid plan is and how rows
 * are aggregated. The fan-out itself is not stored: each worker leaves an ordinary run and bundle.
 */
final class FanoutService {

	/** Default limit of parallel workers. The site's filter can change it; the extension limits the range. */
	private const CONCURRENCY = 8;

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate $gate    Check that the PHP extension is loaded and its version fits.
	 * @param RunService    $runs    Runs one task.
	 * @param SchemaStore   $schemas Loader of the JSON schemas.
	 * @param Site          $site    Site the plugin runs on.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RunService $runs,
		private readonly SchemaStore $schemas,
		private readonly Site $site
	) {}

	/**
	 * Runs the workers and waits until the last one ends.
	 *
	 * @param array<string, mixed> $input     Ability input: `workers`, `concurrency`, `aggregator`, and
	 *   fields that all workers share.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param GroupHooks           $hooks     Callbacks of the caller.
	 * @return array<string, mixed> `wp-codebox/agent-fanout-result/v1`.
	 * @throws Failure When the plan is invalid or the user has too many open groups; no worker has started.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		try {
			$plan = Fanout::read( Workers::known( $input ), $this->most(), 'fanout-' . bin2hex( random_bytes( 8 ) ) );
			// Limits the open batches and fan-outs of a user, as each occupies a PHP worker. The slot is freed on return.
			$slot = Authority::User === $authority ? GroupSlot::take( $this->site->id(), get_current_user_id() ) : null;
		} catch ( Exception $refused ) {
			throw Failure::from( $refused );
		}
		$runner = new FanoutRunner( $this->runs, $plan, $this->inputs( $plan ), $authority, $hooks );
		$since  = FanoutRunner::now();
		$rows   = $runner->run();
		$ended  = FanoutRunner::now();
		return [
			'wp'   => get_bloginfo( 'version' ),
			'runs' => array_values( $rows ),
		] + $plan->answer( FanoutRunner::timings( $since, $ended ) );
	}

	/**
	 * Returns the validated inputs of the workers by id.
	 *
	 * @param Fanout $plan Plan of the workers.
	 * @return array<string, array<string, mixed>> Validated inputs of run-agent-task.
	 * @throws Failure `wp_codebox_fanout_worker_invalid`.
	 */
	private function inputs( Fanout $plan ): array {
		$inputs = [];
		foreach ( $plan->ids() as $id ) {
			try {
				$inputs[ $id ] = $this->schemas->valid( 'run-agent-task-input', $plan->task( $id ), 'task' );
			} catch ( Failure $failure ) {
				/* translators: 1: id of a worker, 2: what is wrong, one sentence. */
				throw Failure::because( ErrorCode::FanoutWorkerInvalid, Sentence::of( __( 'Worker "%1$s": %2$s', 'codebox' ), $id, $failure->getMessage() ) );
			} catch ( Exception $refused ) {
				throw Failure::from( $refused );
			}
		}
		return $inputs;
	}

	/** Returns how many workers of one fan-out may run in parallel on this site. */
	private function most(): int {
		/**
		 * Filters how many workers of a fan-out may run in parallel, from 1 to 64. The host's
		 * `wp_codebox.max_runs` applies in any case: further workers wait.
		 *
		 * @param int $most Default, 8.
		 */
		$most = apply_filters( 'wp_codebox_agent_fanout_max_concurrency', self::CONCURRENCY );
		return is_int( $most ) ? $most : self::CONCURRENCY;
	}
}
