<?php
/**
 * Command `wordpress.invoke-cron-event`: runs, schedules or removes a cron event.
 *
 * `run-hook`, the default, fires the event's hook and leaves the schedule alone. `run` also unschedules the
 * event like WordPress's cron does; a recurring event is scheduled again. Both also run an event that is not
 * scheduled; the result reports this. `schedule-single` and `schedule` are the same.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/action.php';
require __DIR__ . '/lib/cron.php';

define( 'DOING_CRON', true );
begin();
require wordpress( '/wp-cron.php', 'POST' );
finish(
	static function ( Arguments $arguments ): array {
		$hook      = $arguments->required( 'hook' );
		$values    = array_values( $arguments->json( 'args-json' ) );
		$operation = $arguments->word( 'operation', array( 'run-hook', 'schedule-single', 'run', 'schedule', 'unschedule' ), 'run-hook' );
		$event     = wp_get_scheduled_event( $hook, $values, $arguments->has( 'timestamp' ) ? $arguments->number( 'timestamp', 0, 0, 253402300799 ) : null );
		return act(
			$arguments,
			array(
				'kind'      => 'cron-event',
				'name'      => $hook,
				'operation' => $operation,
				'args'      => $values,
				'scheduled' => is_object( $event ) ? array(
					'timestamp' => $event->timestamp,
					'recurs'    => $event->schedule,
				) : null,
			),
			static fn (): mixed => cron_operation( $operation, $hook, $values, $event, $arguments )
		);
	}
);
