<?php
/**
 * Command `wordpress.block-render`: renders one block as the front end does.
 *
 * `markup` is a block's serialized markup with its comment delimiters; without it, `attrs-json` and `content`
 * define the block.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/block.php';

$codebox_watch = watch_blocks();
require wordpress();
finish( static fn ( Arguments $arguments ): array => ( new Block( $arguments, $codebox_watch ) )->exercise( 'render' ) );
