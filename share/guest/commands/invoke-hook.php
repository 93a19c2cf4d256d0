<?php
/**
 * Command `wordpress.invoke-hook`: fires a hook, as the first administrator.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/action.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$hook      = $arguments->required( 'hook' );
		$values    = array_values( $arguments->json( 'args-json' ) );
		$callbacks = array_sum( array_map( 'count', $GLOBALS['wp_filter'][ $hook ]->callbacks ?? array() ) );
		return act(
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
