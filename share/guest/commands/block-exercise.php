<?php
/**
 * Command `wordpress.block-exercise`: serialises, parses and renders one block, and says what does
 * not fit. `mode` names one of render, serialize, round-trip; all otherwise.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/block.php';

$codebox_watch = watch_blocks();
require wordpress();
finish(
	static fn ( Arguments $arguments ): array => ( new Block( $arguments, $codebox_watch ) )
		->exercise( $arguments->word( 'mode', array( 'render', 'serialize', 'round-trip', 'all' ), 'all' ) )
);
