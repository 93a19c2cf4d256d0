<?php
/**
 * Fields of the settings page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\ExtensionGate;
use WPCodebox\Host\SettingUnits;
use WPCodebox\Native\Extension;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * Prints plain form fields with labels and no script. SettingChecks parses the posted values.
 */
final class SettingsForm {

	/**
	 * Creates the form with its dependencies.
	 *
	 * @param Settings      $settings Effective settings.
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly ExtensionGate $gate
	) {}

	/** Declares the sections and fields of the settings page. */
	public function add_fields(): void {
		$page = SettingsPage::SLUG;
		add_settings_section( 'agents', __( 'Agents', 'codebox' ), [ $this, 'about_agents' ], $page );
		add_settings_field( 'agents', __( 'Agents', 'codebox' ), [ $this, 'agents' ], $page, 'agents' );
		add_settings_field( Settings::DEFAULT_AGENT, __( 'Default agent', 'codebox' ), [ $this, 'default_agent' ], $page, 'agents', [ 'label_for' => Settings::DEFAULT_AGENT ] );
		( new ModelFields( $this->settings ) )->add_fields();

		add_settings_section( 'limits', __( 'Limits', 'codebox' ), [ $this, 'about_limits' ], $page );
		foreach ( [
			'wall_clock_seconds' => __( 'Duration (seconds)', 'codebox' ),
			'processes'          => __( 'Processes', 'codebox' ),
			'memory_mib'         => __( 'Memory (MiB)', 'codebox' ),
			'disk_mib'           => __( 'Disk (MiB)', 'codebox' ),
			'output_mib'         => __( 'Output kept per program (MiB)', 'codebox' ),
		] as $field => $label ) {
			add_settings_field( $field, $label, [ $this, 'limit' ], $page, 'limits', [ 'field' => $field, 'label' => $label ] );
		}
		add_settings_field( Settings::MAX_RUNS, __( 'Runs at once', 'codebox' ), [ $this, 'max_runs' ], $page, 'limits', [ 'label_for' => Settings::MAX_RUNS ] );
		$user = ShareSettings::USER_MAX_RUNS;
		add_settings_field( $user, __( 'Runs at once for one user', 'codebox' ), [ $this, 'user_max_runs' ], $page, 'limits', [ 'label_for' => $user ] );
		foreach ( [
			'site_usd'      => __( 'Model cost in a month (US dollars)', 'codebox' ),
			'requester_usd' => __( 'Model cost of one user in a month (US dollars)', 'codebox' ),
		] as $field => $label ) {
			$about = [
				'label_for' => 'wp-codebox-' . $field,
				'field'     => $field,
			];
			add_settings_field( $field, $label, [ $this, 'spend' ], $page, 'limits', $about );
		}

		add_settings_section( 'retention', __( 'Retention', 'codebox' ), [ $this, 'about_retention' ], $page );
		foreach ( [
			'max_age_days'       => __( 'Remove ended runs after (days)', 'codebox' ),
			'max_mib'            => __( 'Keep ended runs up to a total of (MiB)', 'codebox' ),
			'artifacts_max_days' => __( 'Delete bundles after (days)', 'codebox' ),
		] as $field => $label ) {
			add_settings_field( $field, $label, [ $this, 'retention' ], $page, 'retention', [ 'label_for' => 'wp-codebox-' . $field, 'field' => $field ] );
		}

		( new ApplyFields( $this->settings ) )->add( $page );

		add_settings_section( 'trust', __( 'Trust', 'codebox' ), [ $this, 'about_trust' ], $page );
		add_settings_field( Settings::TRUSTED_KEYS, __( 'Trusted keys', 'codebox' ), [ $this, 'trusted_keys' ], $page, 'trust', [ 'label_for' => Settings::TRUSTED_KEYS ] );
		( new CallersField( $this->settings ) )->add( $page );
		add_settings_field( Settings::COMPONENT_CONTRACTS, __( 'Component contracts', 'codebox' ), [ $this, 'components' ], $page, 'trust', [ 'label_for' => Settings::COMPONENT_CONTRACTS ] );
	}

	/** Prints the text above the agent fields: what an agent is. */
	public function about_agents(): void {
		$this->paragraph( __( 'Programs inside the sandbox that a task may name as its agent. To add one, fill in the empty row; to remove one, empty its name and its command line.', 'codebox' ) );
	}

	/** Prints the text above the limit fields: how limits are enforced. */
	public function about_limits(): void {
		$this->paragraph( __( 'These limits apply to every task of this installation. A task may ask for less than a ceiling, never for more. For an empty ceiling the built-in ceiling applies, for an empty default the ceiling of the site or the built-in limit.', 'codebox' ) );
	}

	/** Prints the text above the retention fields: which data is removed, and where it is stored. */
	public function about_retention(): void {
		$this->paragraph( __( 'What "wp codebox gc" removes by default. Empty: ended runs after 30 days, bundles never.', 'codebox' ) );
		if ( null === $this->gate->failure() ) {
			/* translators: %s: directory. */
			$this->paragraph( sprintf( __( 'Runs and bundles are kept in the state directory %s. It is set in php.ini (wp_codebox.state_dir) and cannot be changed here.', 'codebox' ), (string) ( Extension::info()['state_dir'] ?? '' ) ) );
		}
	}

	/** Prints the text above the trust fields: whose bundles may be applied. */
	public function about_trust(): void {
		$this->paragraph( __( 'Bundles that this host signed can be applied here, others only when the id of their key is listed below.', 'codebox' ) );
	}

	/** Prints the table of agents, with one empty row for a new agent. */
	public function agents(): void {
		$rows   = $this->settings->agents();
		$number = 0;
		echo '<table class="widefat striped"><colgroup><col><col style="width: 45%"><col></colgroup><thead><tr>';
		foreach ( [ __( 'Name', 'codebox' ), __( 'Command line', 'codebox' ), __( 'Exit codes that mean success', 'codebox' ) ] as $title ) {
			printf( '<th scope="col">%s</th>', esc_html( $title ) );
		}
		echo '</tr></thead><tbody>';
		foreach ( $rows + [ '' => [ 'command' => '', 'success_codes' => [] ] ] as $name => $row ) {
			++$number;
			echo '<tr>';
			/* translators: %d: number of the row. */
			$this->cell( $number, 'name', sprintf( __( 'Name of agent %d', 'codebox' ), $number ), (string) $name, 'regular-text' );
			/* translators: %d: number of the row. */
			$this->cell( $number, 'command', sprintf( __( 'Command line of agent %d', 'codebox' ), $number ), $row['command'], 'large-text code' );
			/* translators: %d: number of the row. */
			$this->cell( $number, 'success_codes', sprintf( __( 'Exit codes of agent %d that mean success', 'codebox' ), $number ), implode( ', ', $row['success_codes'] ), 'small-text' );
			echo '</tr>';
		}
		echo '</tbody></table>';
	}

	/** Prints the field of the default agent. */
	public function default_agent(): void {
		$stored = $this->settings->stored( Settings::DEFAULT_AGENT );
		printf( '<select id="%1$s" name="%1$s"><option value="">%2$s</option>', esc_attr( Settings::DEFAULT_AGENT ), esc_html__( 'None: a task that names no agent gets the built-in agent if it has a model, and is refused otherwise', 'codebox' ) );
		foreach ( AgentChoice::names( $this->settings ) as $name ) {
			printf( '<option value="%1$s"%2$s>%1$s</option>', esc_attr( $name ), selected( $stored, $name, false ) );
		}
		echo '</select>';
	}

	/**
	 * Prints the fields for default and ceiling of one limit.
	 *
	 * @param array<string, string> $field Field arguments `field` and `label`.
	 */
	public function limit( array $field ): void {
		[ $stored, $factor ] = SettingUnits::UNITS[ $field['field'] ];
		$ceiling             = ShareSettings::ceilings( [] )[ $stored ] ?? 0;
		printf( '<fieldset><legend class="screen-reader-text">%s</legend>', esc_html( $field['label'] ) );
		foreach ( [
			'defaults' => [ __( 'Default', 'codebox' ), $this->settings->default_limits() ],
			'ceilings' => [ __( 'Ceiling', 'codebox' ), $this->settings->limit_ceilings() ],
		] as $kind => [ $label, $values ] ) {
			printf( '<label>%s ', esc_html( $label ) );
			$this->number( Settings::LIMITS . "[$kind][{$field['field']}]", '', $values[ $stored ] ?? 0, $factor );
			echo '</label> ';
		}
		if ( 0 !== $ceiling ) {
			/* translators: %d: built-in ceiling of a limit, in the unit of the field. */
			echo esc_html( sprintf( __( 'Empty ceiling: %d', 'codebox' ), SettingUnits::shown( $ceiling, $factor ) ) );
		}
		echo '</fieldset>';
	}

	/** Prints the field for the maximum number of parallel runs. */
	public function max_runs(): void {
		$host = $this->settings->host_max_runs();
		$this->number( Settings::MAX_RUNS, Settings::MAX_RUNS, $this->settings->own_max_runs() ?? 0, 1, Settings::MAX_RUNS . '-about' );
		$this->paragraph(
			null === $host
				? __( 'Empty uses the limit of the host.', 'codebox' )
				/* translators: %d: number of runs. */
				: sprintf( __( 'Empty uses the limit of the host, which is %d.', 'codebox' ), $host ),
			Settings::MAX_RUNS . '-about'
		);
	}

	/** Prints the field for the maximum number of parallel runs of one user. */
	public function user_max_runs(): void {
		$name  = ShareSettings::USER_MAX_RUNS;
		$about = __( 'Empty is half of "Runs at once". Users who may change these settings are not limited.', 'codebox' );
		$this->number( $name, $name, ShareSettings::user_max_runs() ?? 0, 1, $name . '-about' );
		$this->paragraph( $about, $name . '-about' );
	}

	/**
	 * Prints the field for one cap of model cost.
	 *
	 * @param array<string, string> $field Field arguments `field` and `label_for`.
	 */
	public function spend( array $field ): void {
		[ $stored, $factor ] = SettingUnits::UNITS[ $field['field'] ];
		$cap = ShareSettings::spend_caps()[ $stored ] ?? 0;
		$this->number( ShareSettings::SPEND . "[{$field['field']}]", $field['label_for'], $cap, $factor );
	}

	/**
	 * Prints the field for one retention limit, an age or a size.
	 *
	 * @param array<string, string> $field Field arguments `field` and `label_for`.
	 */
	public function retention( array $field ): void {
		[ $stored, $factor ] = SettingUnits::UNITS[ $field['field'] ];
		$this->number( Settings::RETENTION . "[{$field['field']}]", $field['label_for'], $this->settings->retention()[ $stored ] ?? 0, $factor );
	}

	/** Prints the field of trusted key ids. */
	public function trusted_keys(): void {
		$stored = array_filter( (array) get_site_option( Settings::TRUSTED_KEYS, [] ), 'is_string' );
		$this->text( Settings::TRUSTED_KEYS, implode( "\n", $stored ), __( 'Key ids, one per line. "wp codebox artifacts inspect" shows the id of the key that signed a bundle.', 'codebox' ) );
	}

	/** Prints the field of component contracts: plugins that every sandbox loads. */
	public function components(): void {
		$stored = (array) get_site_option( Settings::COMPONENT_CONTRACTS, [] );
		$this->text( Settings::COMPONENT_CONTRACTS, [] === $stored ? '' : (string) wp_json_encode( $stored, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES ), __( 'Plugins that every sandbox loads beside the code that the agent changes: a JSON list of objects with a "slug".', 'codebox' ) );
	}

	/**
	 * Prints a cell of the agents table.
	 *
	 * @param int    $number Row number.
	 * @param string $field  Column name.
	 * @param string $label  Label for screen readers.
	 * @param string $value  Value of the cell.
	 * @param string $size   WordPress CSS class that sets the width.
	 */
	private function cell( int $number, string $field, string $label, string $value, string $size ): void {
		printf( '<td><input type="text" class="%1$s" name="%2$s[%3$d][%4$s]" value="%5$s" aria-label="%6$s"></td>', esc_attr( $size ), esc_attr( Settings::AGENTS ), (int) $number, esc_attr( $field ), esc_attr( $value ), esc_attr( $label ) );
	}

	/**
	 * Prints a number field; 0 is shown as empty.
	 *
	 * @param string $name   Name attribute.
	 * @param string $id     Id attribute, or '' inside a label.
	 * @param int    $value  Stored value.
	 * @param int    $factor Number of stored units in one displayed unit.
	 * @param string $about  Id of the describing text, or ''.
	 */
	private function number( string $name, string $id, int $value, int $factor, string $about = '' ): void {
		printf(
			'<input type="number" min="0" step="1" class="small-text" name="%s" value="%s"%s%s>',
			esc_attr( $name ),
			esc_attr( 0 === $value ? '' : (string) SettingUnits::shown( $value, $factor ) ),
			'' === $id ? '' : ' id="' . esc_attr( $id ) . '"',
			'' === $about ? '' : ' aria-describedby="' . esc_attr( $about ) . '"'
		);
	}

	/**
	 * Prints a multi-line text field.
	 *
	 * @param string $option Name of the option.
	 * @param string $value  Value of the field.
	 * @param string $about  Description below the field.
	 */
	private function text( string $option, string $value, string $about ): void {
		printf( '<textarea id="%1$s" name="%1$s" rows="4" class="large-text code" spellcheck="false" aria-describedby="%1$s-about">%2$s</textarea>', esc_attr( $option ), esc_textarea( $value ) );
		$this->paragraph( $about, $option . '-about' );
	}

	/**
	 * Prints a paragraph.
	 *
	 * @param string $text Text to print.
	 * @param string $id   Id attribute, or ''.
	 */
	private function paragraph( string $text, string $id = '' ): void {
		printf( '<p class="description"%s>%s</p>', '' === $id ? '' : ' id="' . esc_attr( $id ) . '"', esc_html( $text ) );
	}
}
