<?php
/**
 * Result of a Site Health test.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Failure;
use WPCodebox\PlainText;

defined( 'ABSPATH' ) || exit;

/**
 * Builds Site Health results. Tests pass plain text, and this class removes hidden characters and escapes it for HTML.
 */
final class HealthResult {

	/**
	 * Builds the result of a Site Health test.
	 *
	 * @param string       $test   Name of the test.
	 * @param string       $status `good`, `recommended` or `critical`.
	 * @param string       $label  Headline of the result.
	 * @param list<string> $found  Findings, one sentence each.
	 * @param list<string> $fixes  Suggested fixes, one sentence each.
	 * @return array<string, mixed>
	 */
	public static function of( string $test, string $status, string $label, array $found, array $fixes = [] ): array {
		$paragraphs = static fn( array $texts ): string => implode( '', array_map( static fn( string $text ): string => '<p>' . esc_html( PlainText::of( $text ) ) . '</p>', $texts ) );
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
	 * Builds the result `critical` of a Site Health test from a failure.
	 *
	 * @param string  $test    Name of the test.
	 * @param string  $label   Headline of the result.
	 * @param Failure $failure Failure to report.
	 * @return array<string, mixed>
	 */
	public static function failed( string $test, string $label, Failure $failure ): array {
		return self::of( $test, 'critical', $label, [ $failure->getMessage() ], $failure->hints );
	}
}
