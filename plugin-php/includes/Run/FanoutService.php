<?php
/**
 * Several workers at once.
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

defined( 'ABSPATH' ) || exit;

/**
 * Runs a plan of workers, each in a sandbox of its own. What a plan is and what its rows come
 * to together are rules of the extension. Nothing of the fan-out itself is stored: each worker leaves an ordinary run and bundle.
 */
final class FanoutService {

	/** How many at once, unless the site says otherwise. The extension bounds what it says. */
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
	 * Runs the workers and waits for the end of the last.
	 *
	 * @param array<string, mixed> $input     `workers`, `concurrency`, `aggregator`, and fields that all share.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param GroupHooks           $hooks     Callbacks of the caller.
	 * @return array<string, mixed> `wp-codebox/agent-fanout-result/v1`.
	 * @throws Failure When the plan is wrong or the user has too many groups open; then nothing has started.
	 */
	public function run( array $input, Authority $authority, GroupHooks $hooks = new GroupHooks() ): array {
		$this->gate->check();
		try {
			$plan = Fanout::read( $input, $this->most(), 'fanout-' . bin2hex( random_bytes( 8 ) ) );
			// Freed when this method ends: until then the group holds a PHP worker.
			$slot = Authority::User === $authority ? GroupSlot::take( $this->site->id(), get_current_user_id() ) : null;
		} catch ( Exception $refused ) {
			throw Failure::from( $refused );
		}
		$runner = new FanoutRunner( $this->runs, $plan, $this->inputs( $plan ), $authority, $hooks );
		$since  = FanoutRunner::now();
		$rows   = $runner->run();
		$ended  = FanoutRunner::now();
		return [
			'wp'      => get_bloginfo( 'version' ),
			'timings' => FanoutRunner::timings( $since, $ended ),
			'runs'    => array_values( $rows ),
		] + $plan->answer();
	}

	/**
	 * Inputs of the workers by id.
	 *
	 * @param Fanout $plan The plan.
	 * @return array<string, array<string, mixed>> Valid inputs of run-agent-task.
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

	/** Highest concurrency of this site. */
	private function most(): int {
		/**
		 * Filters how many workers of a fan-out may run at once; from 1 to 64. The host's
		 * `wp_codebox.max_runs` bounds them in any case: workers beyond it wait.
		 *
		 * @param int $most 8.
		 */
		$most = apply_filters( 'wp_codebox_agent_fanout_max_concurrency', self::CONCURRENCY );
		return is_int( $most ) ? $most : self::CONCURRENCY;
	}
}
