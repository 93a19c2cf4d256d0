<?php
/**
 * Describes how a change of files ended.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Puts the result of an apply or roll back into one sentence. */
final class ChangeReport {

	/**
	 * Returns the sentence.
	 *
	 * @param array<string, mixed> $result Result of `Changes::apply()` or `Changes::rollBack()`.
	 */
	public static function sentence( array $result ): string {
		$count = count( $result['files'] );
		switch ( $result['status'] ) {
			case 'applied':
				$unknown = 'unknown' === ( $result['health']['status'] ?? '' );
				/* translators: %d: number of files. */
				$sentence = Sentence::of( _n( '%d file was written.', '%d files were written.', $count, 'codebox' ), $count );
				return $unknown ? Sentence::join( ' ', [ $sentence, __( 'The site did not answer when this host requested its pages, so it is not known whether they still work.', 'codebox' ) ] ) : $sentence;
			case 'rolled-back':
				/* translators: %s: what failed, as `front page: 200 before, 500 after`. */
				return Sentence::of( __( 'Pages of the site work worse than before the change (%s), so every file was restored.', 'codebox' ), self::seen( $result ) );
			case 'roll-back-failed':
				/* translators: %s: what failed, as `front page: 200 before, 500 after`. */
				return Sentence::of( __( 'Pages of the site work worse than before the change (%s), and not every file could be restored; restore the listed files by hand.', 'codebox' ), self::seen( $result ) );
			case 'restored':
				/* translators: %d: number of files. */
				return Sentence::of( _n( '%d file was restored to its state before the change.', '%d files were restored to their state before the change.', $count, 'codebox' ), $count );
			default:
				return __( 'Some files were changed again after the change had been applied, and were left as they are; the other files were restored.', 'codebox' );
		}
	}

	/**
	 * Returns the pages that got worse, with their answers before and after the change, and the first fatal error.
	 *
	 * @param array<string, mixed> $result Result of the change.
	 */
	private static function seen( array $result ): string {
		$health = (array) ( $result['health'] ?? [] );
		$worse  = array_filter( (array) ( $health['pages'] ?? [] ), static fn( array $page ): bool => $page['worse'] );
		/* translators: 1: name of a page, 2: answer before the change, 3: answer after it. */
		$lines = array_map( static fn( array $page ): string => Sentence::of( __( '%1$s: %2$s before, %3$s after', 'codebox' ), $page['name'], $page['before'], $page['after'] ), $worse );
		return Sentence::join( '; ', array_merge( $lines, array_slice( (array) ( $health['fatal_errors'] ?? [] ), 0, 1 ) ) );
	}
}
