<?php
/**
 * Command `wordpress.invoke-hook`: fires a hook, as the first administrator.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/action.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		$hook      = $arguments->required( 'hook' );
		$values    = array_values( $arguments->json( 'args-json' ) );
		$callbacks = array_sum( array_map( 'count', $GLOBALS['wp_filter'][ $hook ]->callbacks ?? array() ) );
		return WPCodebox\Guest\Command\act(
			$arguments,
			array(
				'kind'      => 'hook',
				'name'      => $hook,
				'args'      => $values,
				'callbacks' => $callbacks,
			),
			static function () use ( $hook, $values ): void {
				do_action_ref_array( $hook, $values );
			}
		);
	}
);
