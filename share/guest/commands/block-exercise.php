<?php
/**
 * Command `wordpress.block-exercise`: serialises, parses and renders one block, and says what does
 * not fit. `mode` names one of render, serialize, round-trip; all otherwise.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/block.php';

$codebox_watch = WPCodebox\Guest\Command\watch_blocks();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => ( new WPCodebox\Guest\Command\Block( $arguments, $codebox_watch ) )
		->exercise( $arguments->word( 'mode', array( 'render', 'serialize', 'round-trip', 'all' ), 'all' ) )
);
