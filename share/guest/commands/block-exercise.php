<?php
/**
 * Command `wordpress.block-exercise`: serializes, parses and renders one block, and reports differences.
 * `mode` is render or serialize-parse; serialize and round-trip select a check, and all, the default, runs
 * every check and renders. The supervisor carries out mode=editor-insert-save.
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
		->exercise( $arguments->word( 'mode', Block::MODES, 'all' ) )
);
