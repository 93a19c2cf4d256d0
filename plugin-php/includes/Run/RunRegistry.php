<?php
/**
 * Runs of this site, active and ended, of all users.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Access;
use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Exception;
use WPCodebox\Native\Runs;

defined( 'ABSPATH' ) || exit;

/**
 * Lists, reads, follows and cancels runs. A caller without permission gets the same error as for a run that
 * does not exist.
 */
final class RunRegistry {

	public const PER_PAGE = 50;
	public const EVENTS   = 200;

	/** Fields of an ended run that the extension derives from the run's outcome. */
	private const VERDICT = [ 'session_status', 'success', 'exit_status' ];

	/**
	 * Creates the registry with its dependencies.
	 *
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site     Site the plugin runs on.
	 * @param Access        $access   Decides which runs a caller may see.
	 * @param RunEnvelope   $envelope Builds result documents.
	 * @param AuditTrail    $audit    Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site,
		private readonly Access $access,
		private readonly RunEnvelope $envelope,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Lists runs, newest first: all runs of the site for reviewers, else the caller's own.
	 *
	 * @param array<string, mixed> $input     Ability input with `status`, `page`, `per_page`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/run-list/v1`.
	 */
	public function list( array $input, Authority $authority ): array {
		$this->gate->check();
		$page   = (int) ( $input['page'] ?? 1 );
		$limit  = (int) ( $input['per_page'] ?? self::PER_PAGE );
		$filter = array_intersect_key( $input, [ 'status' => true ] ) + [
			'limit'  => $limit,
			'offset' => ( $page - 1 ) * $limit,
		];
		$list   = $this->access->sees_all( $authority ) ? Runs::list( $this->site->id(), $filter ) : $this->access->own_runs( $filter );
		$answer = [
			'success'  => true,
			'schema'   => 'wp-codebox/run-list/v1',
			'total'    => (int) $list['total'],
			'page'     => $page,
			'per_page' => $limit,
			'runs'     => array_map( [ self::class, 'present' ], array_values( (array) $list['runs'] ) ),
		];
		if ( ! empty( $list['unreadable'] ) ) {
			$answer['unreadable'] = array_values( (array) $list['unreadable'] );
		}
		return $answer;
	}

	/**
	 * Reads one run. For an ended run, `result` is the document that a waiting caller would have received,
	 * without the ids that the caller gave. The task in it comes from the bundle, redacted; without a bundle only its
	 * goal is known.
	 *
	 * @param array<string, mixed> $input     Ability input with `run_id`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `{success, schema: wp-codebox/run/v1, run, preview?, result?}`.
	 */
	public function get( array $input, Authority $authority ): array {
		$reference = $this->reference( $input, $authority );
		$view      = Runs::get( $this->site->id(), $reference );
		$answer    = [
			'success' => true,
			'schema'  => 'wp-codebox/run/v1',
			'run'     => self::present( $view ),
		];
		$preview   = empty( $view['provenance']['preview'] ) ? [] : Preview::recorded( $this->site->id(), $reference, (int) $view['last_event'] );
		if ( [] !== $preview ) {
			$answer['preview'] = $preview;
		}
		if ( is_array( $view['result'] ?? null ) && [] !== $view['result'] ) {
			$result           = $view['result'] + array_intersect_key( $view, array_flip( self::VERDICT ) );
			$answer['result'] = $this->envelope->build( [], $this->task( $view, $result ), $result, (array) ( $view['provenance']['model'] ?? [] ), $preview );
		}
		return $answer;
	}

	/**
	 * Returns the events of a run that follow the cursor `after`.
	 *
	 * @param array<string, mixed> $input     Ability input with `run_id`, `after`, `per_page`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/run-events/v1`.
	 */
	public function events( array $input, Authority $authority ): array {
		$reference = $this->reference( $input, $authority );
		$events    = Runs::events( $this->site->id(), $reference, (int) ( $input['after'] ?? 0 ), (int) ( $input['per_page'] ?? self::EVENTS ) );
		foreach ( $events['events'] as $index => $event ) {
			if ( [] === ( $event['data'] ?? null ) ) {
				unset( $events['events'][ $index ]['data'] );
			}
		}
		return [ 'success' => true ] + $events;
	}

	/**
	 * Requests that a run stops and stores its changes. Repeating the request, or cancelling an ended run, is
	 * not an error.
	 *
	 * @param array<string, mixed> $input     Ability input with `run_id`.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array<string, mixed> `wp-codebox/run-cancellation/v1`.
	 */
	public function cancel( array $input, Authority $authority ): array {
		$reference = $this->reference( $input, $authority );
		$answer    = Runs::cancel( $this->site->id(), $reference );
		// Recorded after the request: a log that cannot be written must not prevent the cancellation.
		if ( 'requested' === $answer['answer'] ) {
			$this->audit->write( 'run-cancel', [ 'run_id' => (string) $answer['run_id'] ] );
		}
		return [ 'success' => true ] + $answer;
	}

	/**
	 * Returns a run in the form for responses: without its result and without empty objects.
	 *
	 * @param array<string, mixed> $view `wp-codebox/run/v1` of the extension.
	 * @return array<string, mixed>
	 */
	private static function present( array $view ): array {
		unset( $view['result'] );
		foreach ( [ 'provenance', 'error' ] as $field ) {
			if ( empty( $view[ $field ] ) ) {
				unset( $view[ $field ] );
			}
		}
		if ( isset( $view['error'] ) && empty( $view['error']['data'] ) ) {
			unset( $view['error']['data'] );
		}
		return $view;
	}

	/**
	 * Returns the run reference for the extension, if the caller may see the run.
	 *
	 * @param array<string, mixed> $input     Ability input with `run_id` or a prefix of one.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_run_not_found` for a run that does not exist or belongs to another user.
	 */
	private function reference( array $input, Authority $authority ): string {
		$this->gate->check();
		$reference = trim( (string) ( $input['run_id'] ?? '' ) );
		if ( '' === $reference ) {
			throw Failure::invalid_input( __( 'No run was named; give run_id.', 'codebox' ) );
		}
		return $this->access->run( $reference, $authority );
	}

	/**
	 * Returns the task of an ended run: from its bundle, else only the goal from its record.
	 *
	 * @param array<string, mixed> $view   `wp-codebox/run/v1`.
	 * @param array<string, mixed> $result `wp-codebox/run-result/v1`.
	 * @return array<string, mixed> `wp-codebox/task-input/v1`.
	 */
	private function task( array $view, array $result ): array {
		$task = null;
		if ( ! empty( $result['artifacts']['path'] ) ) {
			try {
				$task = Artifacts::get( $this->site->id(), (string) $view['run_id'] )['metadata']['task'] ?? null;
			} catch ( Exception ) {
				// The bundle was discarded or is damaged; the run record alone is enough.
				$task = null;
			}
		}
		if ( is_array( $task ) && is_string( $task['goal'] ?? null ) ) {
			return $task;
		}
		return [
			'schema'  => 'wp-codebox/task-input/v1',
			'version' => 1,
			'goal'    => empty( $view['goal'] ) ? 'not recorded' : (string) $view['goal'],
		];
	}
}
