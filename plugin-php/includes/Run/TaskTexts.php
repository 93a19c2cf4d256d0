<?php
/**
 * Names and labels of the texts of a task that lists and reports of runs show.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

defined( 'ABSPATH' ) || exit;

/**
 * The same texts as `TaskTexts` of the extension: fields of a task, members of its document, and members of a run.
 */
final class TaskTexts {

	public const NAMES = [ 'goal' ];

	/**
	 * Returns the label of each text, by name.
	 *
	 * @return array<string, string>
	 */
	public static function labels(): array {
		return [
			'goal' => __( 'Goal', 'codebox' ),
		];
	}
}
