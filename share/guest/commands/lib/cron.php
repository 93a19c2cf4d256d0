<?php
/**
 * Runs, schedules and removes cron events.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Runs the hook of an event, or runs, schedules or removes the event itself.
 *
 * @param string       $operation Operation: run-hook, run, schedule-single, schedule or unschedule.
 * @param string       $hook      Name of the hook.
 * @param list<mixed>  $values    Arguments of the hook.
 * @param object|false $event     Scheduled event, if any.
 * @param Arguments    $arguments Guest command arguments with `timestamp`.
 * @return array<string,mixed>
 */
function cron_operation( string $operation, string $hook, array $values, object|false $event, Arguments $arguments ): array {
	if ( in_array( $operation, array( 'run-hook', 'run' ), true ) ) {
		if ( 'run' === $operation && is_object( $event ) ) {
			if ( $event->schedule ) {
				wp_reschedule_event( $event->timestamp, $event->schedule, $hook, $values );
			}
			wp_unschedule_event( $event->timestamp, $hook, $values );
		}
		do_action_ref_array( $hook, $values );
		return cron_result( $operation, $hook, $values );
	}
	if ( in_array( $operation, array( 'schedule-single', 'schedule' ), true ) ) {
		$done = wp_schedule_single_event( $arguments->number( 'timestamp', time(), 0, 253402300799 ), $hook, $values, true );
	} elseif ( is_object( $event ) ) {
		$done = wp_unschedule_event( $event->timestamp, $hook, $values, true );
	} else {
		throw new Refusal( 'event-missing', sprintf( 'no event of %s with these arguments is scheduled', Arguments::shown( $hook ) ) );
	}
	if ( is_wp_error( $done ) ) {
		throw new Refusal( 'event-refused', 'WordPress refused: ' . $done->get_error_message() );
	}
	return cron_result( $operation, $hook, $values );
}

/**
 * Returns the result of an operation: its name, and the next time at which the event is scheduled.
 *
 * @param string      $operation Operation.
 * @param string      $hook      Name of the hook.
 * @param list<mixed> $values    Arguments of the hook.
 * @return array{operation: string, hook: string, next: int|false}
 */
function cron_result( string $operation, string $hook, array $values ): array {
	return array(
		'operation' => $operation,
		'hook'      => $hook,
		'next'      => wp_next_scheduled( $hook, $values ),
	);
}
