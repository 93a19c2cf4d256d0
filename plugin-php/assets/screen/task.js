/**
 * Form that starts a task.
 */
( function ( codebox, wp ) {
	'use strict';

	const { __ } = wp.i18n;
	const { api } = codebox;
	const { el, id, failure } = codebox.dom;

	/** Creates a form field with its label and help text. */
	function field( label, input, help ) {
		const name = id( 'field' );
		input.id = name;
		if ( help ) {
			input.setAttribute( 'aria-describedby', name + '-help' );
		}
		return el( 'div', { class: 'wp-codebox-field' }, el( 'label', { for: name }, label ), input, help ? el( 'p', { class: 'description', id: name + '-help' }, help ) : null );
	}

	/**
	 * Loads the slugs of installed plugins or themes from WordPress's REST routes; none when the user may not
	 * list them.
	 */
	async function installed( kind, signal ) {
		try {
			if ( 'theme' === kind ) {
				const themes = await wp.apiFetch( { path: '/wp/v2/themes?_fields=stylesheet', signal } );
				return themes.map( ( theme ) => theme.stylesheet );
			}
			const plugins = await wp.apiFetch( { path: '/wp/v2/plugins?_fields=plugin', signal } );
			return plugins.map( ( plugin ) => plugin.plugin.split( '/' )[ 0 ] );
		} catch ( thrown ) {
			return [];
		}
	}

	/** Shows the form that starts a task. */
	async function form( { signal } ) {
		const goal = el( 'textarea', { rows: 4, required: true, name: 'goal', class: 'large-text' } );
		const kind = el( 'select', { name: 'kind' }, el( 'option', { value: 'plugin' }, __( 'Plugin', 'codebox' ) ), el( 'option', { value: 'theme' }, __( 'Theme', 'codebox' ) ) );
		const slugs = el( 'datalist', { id: id( 'slugs' ) } );
		const slug = el( 'input', { type: 'text', name: 'slug', required: true, list: slugs.id, autocomplete: 'off', spellcheck: 'false', class: 'regular-text' } );
		const agent = el( 'input', { type: 'text', name: 'agent', autocomplete: 'off', spellcheck: 'false', class: 'regular-text' } );
		const model = el( 'input', { type: 'text', name: 'model', autocomplete: 'off', spellcheck: 'false', class: 'regular-text' } );
		const checks = el( 'textarea', { rows: 2, name: 'checks', class: 'large-text code', spellcheck: 'false' } );
		const problem = el( 'div', {} );
		const submit = el( 'button', { type: 'submit', class: 'button button-primary' }, __( 'Start the task', 'codebox' ) );

		const offer = async () => {
			const wanted = kind.value;
			const found = await installed( wanted, signal );
			if ( wanted === kind.value ) {
				slugs.replaceChildren( ...found.map( ( value ) => el( 'option', { value } ) ) );
			}
		};
		kind.addEventListener( 'change', offer );
		offer();

		const send = async ( event ) => {
			event.preventDefault();
			problem.replaceChildren();
			const input = { goal: goal.value, [ kind.value ]: slug.value.trim(), wait: false };
			const commands = checks.value.split( '\n' ).map( ( line ) => line.trim() ).filter( Boolean );
			if ( agent.value.trim() ) {
				input.agent = agent.value.trim();
			}
			if ( model.value.trim() ) {
				input.model = model.value.trim();
			}
			if ( commands.length ) {
				input.checks = commands;
			}
			submit.disabled = true;
			try {
				const handle = await api.call( 'run-agent-task', input, signal );
				const run = handle.run_id || ( handle.run && handle.run.run_id );
				window.location.hash = '#/runs/' + encodeURIComponent( run );
			} catch ( thrown ) {
				if ( 'AbortError' !== thrown.name ) {
					problem.replaceChildren( failure( thrown, __( 'No task was started.', 'codebox' ) ) );
					submit.disabled = false;
					submit.focus();
				}
			}
		};

		const element = el(
			'form',
			{ class: 'wp-codebox-form', on: { submit: send } },
			field( __( 'Goal', 'codebox' ), goal, __( 'What the agent shall do, in plain words.', 'codebox' ) ),
			field( __( 'Kind', 'codebox' ), kind ),
			field( __( 'Slug', 'codebox' ), slug, __( 'Directory name of the installed plugin or theme. The agent sees a private copy of it; the original is never written.', 'codebox' ) ),
			slugs,
			field( __( 'Agent (optional)', 'codebox' ), agent, __( 'Name of an agent this site offers. Empty: the default.', 'codebox' ) ),
			field( __( 'Model (optional)', 'codebox' ), model, __( 'Name of a model, for agents that use one. Empty: the default.', 'codebox' ) ),
			field( __( 'Checks (optional)', 'codebox' ), checks, __( 'One command a line; each runs after the agent in a fresh sandbox.', 'codebox' ) ),
			problem,
			el( 'p', {}, submit )
		);
		return { title: __( 'New task', 'codebox' ), content: [ element ] };
	}

	codebox.task = { form };
} )( window.wpCodebox, window.wp );
