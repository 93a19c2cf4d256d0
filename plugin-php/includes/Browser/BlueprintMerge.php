<?php
/**
 * Joins blueprints to one.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Turns the short forms of blueprints into steps, in order. Refuses steps that the engine cannot do; the error has number and name. */
final class BlueprintMerge {

	private const STEPS = [ 'login', 'activatePlugin', 'activateTheme', 'installPlugin', 'installTheme', 'writeFile', 'writeFiles', 'mkdir', 'rm', 'rmdir', 'mv', 'cp', 'unzip', 'runPHP', 'defineWpConfigConsts', 'setSiteOptions', 'wp-cli' ];

	/** Fields of a blueprint that have no effect: descriptions, and versions and features, which the engine decides. */
	private const NOTES = [ '$schema', 'meta', 'preferredVersions', 'phpExtensionBundles', 'features' ];

	/** @var list<array<string, mixed>> Steps so far. */
	private array $steps = [];

	/** @var list<string> Installed plugins that blueprints name. */
	private array $plugins = [];

	/** Page that is shown first; '' for none. */
	private string $landing = '';

	/**
	 * Adds a blueprint.
	 *
	 * @param string       $field     Name of the input field that contains it.
	 * @param array<mixed> $blueprint Blueprint.
	 * @throws Failure `wp_codebox_browser_step_unsupported`, `wp_codebox_input_invalid`.
	 */
	public function add( string $field, array $blueprint ): void {
		foreach ( array_keys( $blueprint ) as $name ) {
			if ( ! in_array( $name, [ ...self::NOTES, 'landingPage', 'login', 'constants', 'siteOptions', 'plugins', 'steps' ], true ) ) {
				/* translators: %s: name of a field. */
				throw Failure::because( ErrorCode::BrowserStepUnsupported, Sentence::of( __( 'The blueprint field %s is not supported in a browser sandbox of this site.', 'codebox' ), "$field.$name" ), [ __( 'Remove the field, or give its content as entries of "steps".', 'codebox' ) ], [ 'field' => "$field.$name" ] );
			}
		}
		if ( is_string( $blueprint['landingPage'] ?? null ) && '' !== $blueprint['landingPage'] ) {
			$this->landing = $blueprint['landingPage'];
		}
		foreach ( [ 'constants' => [ 'defineWpConfigConsts', 'consts' ], 'siteOptions' => [ 'setSiteOptions', 'options' ] ] as $name => [ $step, $key ] ) {
			if ( ! empty( $blueprint[ $name ] ) ) {
				$this->steps[] = [ 'step' => $step, $key => (array) $blueprint[ $name ] ];
			}
		}
		foreach ( array_values( (array) ( $blueprint['plugins'] ?? [] ) ) as $number => $plugin ) {
			if ( is_string( $plugin ) && 1 === preg_match( '/^[A-Za-z0-9._-]+$/D', $plugin ) ) {
				$this->plugins[] = $plugin;
			} else {
				$this->steps[] = $this->checked( [ 'step' => 'installPlugin', 'pluginData' => $plugin ], "$field.plugins[$number]" );
			}
		}
		if ( ! empty( $blueprint['login'] ) ) {
			$this->steps[] = [ 'step' => 'login' ] + ( is_array( $blueprint['login'] ) ? $blueprint['login'] : [] );
		}
		$this->add_steps( "$field.steps", (array) ( $blueprint['steps'] ?? [] ) );
	}

	/**
	 * Adds steps.
	 *
	 * @param string       $field Name of the list, for errors.
	 * @param array<mixed> $steps Steps; false and null mean none.
	 */
	public function add_steps( string $field, array $steps ): void {
		foreach ( array_values( $steps ) as $number => $step ) {
			if ( null !== $step && false !== $step ) {
				$this->steps[] = $this->checked( $step, "{$field}[$number]", $number + 1 );
			}
		}
	}

	/**
	 * Returns a step that the engine can do.
	 *
	 * @param mixed  $step   Step.
	 * @param string $field  Its path, for errors.
	 * @param int    $number Its number in its list.
	 * @return array<string, mixed>
	 */
	private function checked( mixed $step, string $field, int $number = 1 ): array {
		$name = is_array( $step ) && is_string( $step['step'] ?? null ) ? $step['step'] : '';
		if ( ! in_array( $name, self::STEPS, true ) ) {
			throw Failure::because(
				ErrorCode::BrowserStepUnsupported,
				/* translators: 1: number, 2: name of a step. */
				Sentence::of( __( 'Step %1$d (%2$s) is not supported in a browser sandbox of this site.', 'codebox' ), $number, '' === $name ? '?' : sanitize_text_field( $name ) ),
				/* translators: %s: list of names. */
				[ Sentence::of( __( 'Supported: %s.', 'codebox' ), implode( ', ', self::STEPS ) ) ],
				[ 'field' => $field ]
			);
		}
		$data = $step['themeData'] ?? $step['themeZipFile'] ?? null;
		if ( 'installTheme' === $name && is_array( $data ) && 'url' === ( $data['resource'] ?? '' ) ) {
			$this->check_theme( (string) ( $data['url'] ?? '' ), $number - 1, $field );
		}
		$data = $step['pluginData'] ?? $step['pluginZipFile'] ?? null;
		if ( 'installPlugin' === $name && is_array( $data ) && 'url' === ( $data['resource'] ?? '' ) ) {
			PluginUrls::step( $data, $number - 1 );
		}
		return $step;
	}

	/**
	 * Fails when a theme is on a host that is not allowed.
	 *
	 * @param string $url   Address.
	 * @param int    $index Number of the step.
	 * @param string $field Path of the step.
	 */
	private function check_theme( string $url, int $index, string $field ): void {
		PlaygroundUrls::checked( $field . '.themeData.url', $url );
		/**
		 * Filters the hosts from which a sandbox in a browser may install themes.
		 *
		 * @param list<string> $hosts Hosts; default the one of this site.
		 * @param string       $url   Address.
		 * @param int          $index Number of the step.
		 */
		$hosts = apply_filters( 'wp_codebox_browser_theme_allowed_hosts', [ (string) wp_parse_url( home_url(), PHP_URL_HOST ) ], $url, $index );
		if ( ! PlaygroundUrls::is_on( $url, $hosts ) ) {
			throw Failure::because( ErrorCode::BrowserPluginHostNotAllowed, __( 'A theme of the session is on a host that this site does not allow.', 'codebox' ), [ __( 'Install the theme on this site and name its slug, or allow the host with the filter wp_codebox_browser_theme_allowed_hosts.', 'codebox' ) ], [ 'field' => $field ] );
		}
	}

	/**
	 * Returns the installed plugins that blueprints name.
	 *
	 * @return list<string>
	 */
	public function plugins(): array {
		return $this->plugins;
	}

	/**
	 * Returns the joined blueprint.
	 *
	 * @return array<string, mixed>
	 */
	public function blueprint(): array {
		return [ 'steps' => $this->steps ] + ( '' === $this->landing ? [] : [ 'landingPage' => $this->landing ] );
	}
}
