<?php
/**
 * Runs one agent task from input to envelope.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\Site;
use WPCodebox\Native\Run;

defined( 'ABSPATH' ) || exit;

/**
 * The one way into a sandbox for abilities and commands alike.
 */
final class RunService {

	/**
	 * Wires the service.
	 *
	 * @param ExtensionGate  $gate     Extension check.
	 * @param RequestBuilder $requests Request builder.
	 * @param RunEnvelope    $envelope Answer builder.
	 * @param Site           $site     This site.
	 * @param AuditTrail     $audit    Audit log.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly RequestBuilder $requests,
		private readonly RunEnvelope $envelope,
		private readonly Site $site,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Runs the task and waits for its end.
	 *
	 * @param array<string, mixed>                        $input      Task input, valid by its schema.
	 * @param Authority                                   $authority  In whose name.
	 * @param list<array{source: string, target: string}> $staged     Host files the operator puts into the guest.
	 * @param (callable(Run): void)|null                  $on_started Gets the handle once the run exists.
	 * @param (callable(array): mixed)|null               $on_event   Gets each lifecycle event; false cancels.
	 * @param list<array<string, mixed>>                  $secrets    Secrets the operator lends: {env, value, hosts}.
	 * @return array<string, mixed> `wp-codebox/agent-task-run/v1`.
	 * @throws Failure|\WPCodebox\Native\Exception When the run came to no outcome.
	 */
	public function run( array $input, Authority $authority, array $staged = [], ?callable $on_started = null, ?callable $on_event = null, #[\SensitiveParameter] array $secrets = [] ): array {
		$this->gate->check();
		$request = $this->requests->build( $input, $authority, $staged, $secrets );
		$this->note_operator_mounts( $request, $authority );

		$run = Run::start( $request );
		if ( null !== $on_started ) {
			$on_started( $run );
		}
		$result = $run->wait( $on_event );
		return $this->envelope->build( $input, $this->requests->task_input( $input ), $result );
	}

	/**
	 * An operator may mount what is no plugin, theme or configured root; the log says so.
	 *
	 * @param array<string, mixed> $request   The request.
	 * @param Authority            $authority In whose name.
	 */
	private function note_operator_mounts( array $request, Authority $authority ): void {
		if ( Authority::Operator !== $authority ) {
			return;
		}
		$known   = $this->site->known_roots();
		$foreign = [];
		foreach ( array_merge( (array) $request['mounts'], (array) ( $request['staged_files'] ?? [] ) ) as $row ) {
			$source = $this->site->canonical( (string) ( $row['source'] ?? '' ) );
			if ( ! Site::is_within( $source, $known ) ) {
				$foreign[] = [
					'source' => $source,
					'target' => (string) ( $row['target'] ?? '' ),
				];
			}
		}
		if ( [] !== $foreign ) {
			$this->audit->write( 'operator-mount', [ 'mounts' => $foreign ] );
		}
	}
}
