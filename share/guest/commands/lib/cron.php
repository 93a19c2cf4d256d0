<?php
/**
 * Runs, schedules and removes cron events.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Runs, schedules or removes the event of a hook.
 *
 * @param string       $operation Operation: run, schedule or unschedule.
 * @param string       $hook      Name of the hook.
 * @param list<mixed>  $values    Arguments of the hook.
 * @param object|false $event     Scheduled event, if any.
 * @param Arguments    $arguments Guest command arguments with `timestamp`.
 * @return array<string,mixed>
 */
function cron_operation( string $operation, string $hook, array $values, object|false $event, Arguments $arguments ): array {
	if ( 'run' === $operation ) {
		if ( is_object( $event ) ) {
			if ( $event->schedule ) {
				wp_reschedule_event( $event->timestamp, $event->schedule, $hook, $values );
			}
			wp_unschedule_event( $event->timestamp, $hook, $values );
		}
		do_action_ref_array( $hook, $values );
		return array( 'next' => wp_next_scheduled( $hook, $values ) );
	}
	if ( 'schedule' === $operation ) {
		$done = wp_schedule_single_event( $arguments->number( 'timestamp', time(), 0, 253402300799 ), $hook, $values, true );
	} elseif ( is_object( $event ) ) {
		$done = wp_unschedule_event( $event->timestamp, $hook, $values, true );
	} else {
		throw new Refusal( 'event-missing', sprintf( 'no event of %s with these arguments is scheduled', Arguments::shown( $hook ) ) );
	}
	if ( is_wp_error( $done ) ) {
		throw new Refusal( 'event-refused', 'WordPress refused: ' . $done->get_error_message() );
	}
	return array( 'next' => wp_next_scheduled( $hook, $values ) );
}
