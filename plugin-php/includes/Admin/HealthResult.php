<?php
/**
 * The answer of a Site Health test.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Escapes every sentence, so that a test hands over plain text.
 */
final class HealthResult {

	/**
	 * One result.
	 *
	 * @param string       $test   Name.
	 * @param string       $status `good`, `recommended` or `critical`.
	 * @param string       $label  Headline.
	 * @param list<string> $found  Sentences.
	 * @param list<string> $fixes  What to do.
	 * @return array<string, mixed>
	 */
	public static function of( string $test, string $status, string $label, array $found, array $fixes = [] ): array {
		$paragraphs = static fn( array $texts ): string => implode( '', array_map( static fn( string $text ): string => '<p>' . esc_html( $text ) . '</p>', $texts ) );
		return [
			'label'       => $label,
			'status'      => $status,
			'badge'       => [
				'label' => 'Codebox',
				'color' => 'blue',
			],
			'description' => $paragraphs( $found ),
			'actions'     => $paragraphs( $fixes ),
			'test'        => $test,
		];
	}

	/**
	 * The result of a test that failed.
	 *
	 * @param string  $test    Name.
	 * @param string  $label   Headline.
	 * @param Failure $failure Why.
	 * @return array<string, mixed>
	 */
	public static function failed( string $test, string $label, Failure $failure ): array {
		return self::of( $test, 'critical', $label, [ $failure->getMessage() ], $failure->hints );
	}
}
