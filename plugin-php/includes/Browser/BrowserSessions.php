<?php
/**
 * Creates browser sessions and contracts.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

defined( 'ABSPATH' ) || exit;

/**
 * Answers the abilities that create a session: a plain one, or one for a contained site, a task or a materializer (a task that
 * makes the files of a site).
 */
final class BrowserSessions {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SessionMaker   $maker   Makes sessions.
	 * @param SessionAnswers $answers Builds answers.
	 * @param TaskPhases     $phases  Reads the phases of a task.
	 */
	public function __construct(
		private readonly SessionMaker $maker,
		private readonly SessionAnswers $answers,
		private readonly TaskPhases $phases
	) {}

	/**
	 * Answers create-browser-playground-session.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-session-product-dto/v1`.
	 */
	public function create( array $input ): array {
		return $this->session( $input )['answer'];
	}

	/**
	 * Makes a session and its summary.
	 *
	 * @param array<string, mixed> $input  Ability input.
	 * @param string               $schema Name of its schema.
	 * @return array{made: MadeSession, answer: array<string, mixed>}
	 */
	public function session( array $input, string $schema = 'create-browser-playground-session-input' ): array {
		$made = $this->maker->make( $input, $schema );
		$dto  = $this->answers->filtered( $this->answers->summary( $made ), $made );
		$raw  = $this->answers->raw( $dto, $made );
		/**
		 * Filters whether the answer is the session itself instead of its summary.
		 *
		 * @param bool                 $include     Whether it is; default the field include_internal_browser_session.
		 * @param array<string, mixed> $input       Ability input.
		 * @param array<string, mixed> $session     Session.
		 * @param array<string, mixed> $product_dto Summary.
		 */
		$internal = true === apply_filters( 'wp_codebox_include_internal_browser_session_contract', ! empty( $input['include_internal_browser_session'] ), $input, $raw, $dto );
		return [
			'made'   => $made,
			'answer' => $internal ? $raw : $dto,
		];
	}

	/**
	 * Answers create-browser-contained-site-session.
	 *
	 * @param array<string, mixed> $input  Ability input.
	 * @param string               $schema Name of its schema.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-session/v1`.
	 */
	public function create_site( array $input, string $schema = 'create-browser-contained-site-session-input' ): array {
		$dto = $this->session( $input, $schema )['answer'];
		return [
			'success'             => true,
			'schema'              => 'wp-codebox/browser-contained-site-session/v1',
			'action'              => 'ready' === $dto['status'] ? 'created' : 'blocked',
			'contained_site'      => $dto['contained_site'],
			'boot'                => $dto['preview_boot'],
			'preview_boot'        => $dto['preview_boot'],
			'preview_lease'       => $dto['preview_lease'],
			'startup_diagnostics' => self::diagnostics( $dto['status'] ),
			'session'             => $dto,
		] + SiteDocuments::FACTS;
	}

	/**
	 * Answers create-browser-task-contract.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-task-product-dto/v1`.
	 */
	public function task( array $input ): array {
		$phases = $this->phases->of( $input );
		return $this->contract( $input, $phases, 'create-browser-task-contract-input', 'wp-codebox/browser-task-product-dto/v1' );
	}

	/**
	 * Answers create-browser-materializer-contract.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-materializer-product-dto/v1`.
	 */
	public function materializer( array $input ): array {
		$phases = $this->phases->of( [ 'phases' => [ [ 'name' => 'materialize', 'kind' => 'materializer' ] ] ] );
		return $this->contract( $input, $phases, 'create-browser-materializer-contract-input', 'wp-codebox/browser-materializer-product-dto/v1' );
	}

	/**
	 * Makes a session whose answer has phases.
	 *
	 * @param array<string, mixed>       $input  Ability input.
	 * @param list<array<string, mixed>> $phases Phases.
	 * @param string                     $schema Name of the input schema.
	 * @param string                     $dto    Schema id of the summary.
	 * @return array<string, mixed>
	 */
	private function contract( array $input, array $phases, string $schema, string $dto ): array {
		$made   = $this->maker->make( $input, $schema );
		$phases = $this->phases->executed( $phases, $input, $made->record );
		$answer = $this->answers->summary( $made, $dto ) + [ 'phases' => $phases ];
		$answer = $answer + [
			'primary'           => [
				'kind'         => 'browser-session',
				'session_id'   => $made->record->session_id,
				'preview_boot' => $answer['preview_boot'],
			],
			'execution_metrics' => [ 'phases' => count( $phases ) ],
		];
		$shown  = $this->answers->filtered( $answer, $made );
		$raw    = $this->answers->raw( $shown, $made );
		/**
		 * Filters whether the answer is the whole document with which the page in the browser starts the session (its
		 * contract) instead of a summary of that document.
		 *
		 * @param bool                 $include  Whether it is; default the field include_internal_browser_contract.
		 * @param array<string, mixed> $input    Ability input.
		 * @param array<string, mixed> $contract Contract.
		 */
		$internal = true === apply_filters( 'wp_codebox_include_internal_browser_contract', ! empty( $input['include_internal_browser_contract'] ), $input, $raw );
		return $internal ? $raw : $shown;
	}

	/**
	 * Returns what a page needs to know before it starts.
	 *
	 * @param string $status `ready` or `blocked`.
	 * @return array<string, mixed>
	 */
	public static function diagnostics( string $status ): array {
		return [
			'schema'            => 'wp-codebox/browser-startup-diagnostics/v1',
			'status'            => $status,
			'server'            => 'contract-only',
			'watchdog_seconds'  => 120,
			'needs'             => [ 'secure-context', 'service-worker', 'decompression-stream', 'web-assembly' ],
		];
	}
}
