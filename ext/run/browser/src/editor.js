// Functions of the block editor. `editor_call` in editor.rs calls this with {act, …} in the page itself, because the stores of the
// editor exist only there; a plugin of the site can therefore change the results.
(async (call) => {
	const wp = window.wp;
	const limit = (text, most) => String(text === null || text === undefined ? '' : text).slice(0, most);
	const fail = (why) => {
		throw new Error(why);
	};
	const store = (name) => (wp && wp.data && wp.data.select ? wp.data.select(name) : undefined);
	const [blocks, editor] = [store('core/block-editor'), store('core/editor')];
	const canvas = () => {
		const frame = document.querySelector('iframe[name="editor-canvas"]');
		return (frame && frame.contentDocument) || document;
	};
	const ready = () => {
		if (!wp || !wp.data || !wp.blocks || !blocks || !editor) return 'the page does not load the block editor';
		const preferences = store('core/preferences');
		// Guides cover the canvas when a user opens the editor for the first time.
		for (const [scope, name] of [['core/edit-post', 'welcomeGuide'], ['core/edit-post', 'welcomeGuideTemplate'], ['core/edit-site', 'welcomeGuide'], ['core/edit-site', 'welcomeGuideStyles'], ['core/edit-site', 'welcomeGuidePage'], ['core/edit-site', 'welcomeGuideTemplate'], ['core', 'enableChoosePatternModal']]) {
			if (preferences && preferences.get(scope, name) !== false) wp.data.dispatch('core/preferences').set(scope, name, false);
		}
		const post = editor.getCurrentPostId();
		if (post === null || post === undefined || post === 0) return 'the editor has no post yet';
		if (typeof editor.__unstableIsEditorReady === 'function' && !editor.__unstableIsEditorReady()) return 'the editor is not ready yet';
		if (!canvas().querySelector('.block-editor-block-list__layout') && !document.querySelector('.editor-post-text-editor')) return 'the canvas has no layout yet';
		return '';
	};
	const state = () => {
		let left = 500;
		const row = (block) => {
			left--;
			const attributes = JSON.stringify(block.attributes);
			return {
				clientId: block.clientId,
				name: block.name,
				isValid: block.isValid !== false,
				attributes: attributes.length <= 4000 ? JSON.parse(attributes) : { truncated: true, bytes: attributes.length },
				innerBlocks: block.innerBlocks.filter(() => left > 0).map(row),
			};
		};
		const selected = blocks.getSelectedBlock();
		const attribute = (name) => {
			const value = editor.getEditedPostAttribute(name);
			return value === undefined ? null : value;
		};
		const title = attribute('title');
		let content = '';
		try {
			content = editor.getEditedPostContent();
		} catch (error) {
			content = wp.blocks.serialize(blocks.getBlocks());
		}
		return {
			ready: ready() === '',
			post: {
				id: editor.getCurrentPostId(),
				type: editor.getCurrentPostType(),
				status: limit(attribute('status'), 40),
				title: limit(title && title.raw !== undefined ? title.raw : title, 500),
			},
			isDirty: Boolean(editor.isEditedPostDirty()),
			isSaving: Boolean(editor.isSavingPost()),
			hasUndo: Boolean(editor.hasEditorUndo && editor.hasEditorUndo()),
			selectedBlock: selected ? { clientId: selected.clientId, name: selected.name } : null,
			blockCount: blocks.getGlobalBlockCount(),
			blocks: blocks.getBlocks().filter(() => left > 0).map(row),
			content: limit(content, 200000),
			contentBytes: new TextEncoder().encode(content).length,
			canvas: { iframe: canvas() !== document },
		};
	};
	const issueText = (issue) => {
		const args = [...((issue && issue.args) || [issue])];
		const shown = (value) => limit(typeof value === 'string' ? value : value && value.outerHTML ? value.outerHTML : JSON.stringify(value), 500);
		const first = typeof args[0] === 'string' ? args.shift() : '';
		const text = first.replace(/%[sodijO]/g, () => (args.length ? shown(args.shift()) : ''));
		return limit([text, ...args.map(shown)].filter(Boolean).join(' '), 2000);
	};
	const validity = (content) => {
		// Parse again: validateBlock compares with the original content, which only blocks from the parser have. The parser also
		// migrates blocks of deprecated versions; these are not valid until they are saved again.
		const list = wp.blocks.parse(typeof content === 'string' ? content : wp.blocks.serialize(blocks.getBlocks()));
		const results = [];
		let total = 0;
		let valid = 0;
		const visit = (block, path) => {
			const missing = block.name === wp.blocks.getUnregisteredTypeHandlerName();
			const name = missing ? block.attributes.originalName || block.name : block.name;
			const [holds, found] = missing ? [false, []] : wp.blocks.validateBlock(block);
			total++;
			valid += holds ? 1 : 0;
			const issues = missing ? [`the block type ${name} is not registered`] : holds ? [] : (found || []).map(issueText);
			if (!holds && issues.length === 0) issues.push('the saved content differs from what the block would save');
			if (results.length < 2000) results.push({ name: limit(name, 200), isValid: Boolean(holds), issues: issues.slice(0, 20), path });
			block.innerBlocks.forEach((inner, at) => visit(inner, [...path, at]));
		};
		list.forEach((block, at) => visit(block, [at]));
		return { total_blocks: total, valid_blocks: valid, invalid_blocks: total - valid, validation_method: 'wp.blocks.validateBlock', results };
	};
	const all = () => {
		const found = [];
		const visit = (block) => {
			found.push(block);
			block.innerBlocks.forEach(visit);
		};
		blocks.getBlocks().forEach(visit);
		return found;
	};
	const wantedName = call.blockName || call.name;
	const matching = () => {
		if (call.clientId) return all().filter((block) => block.clientId === call.clientId);
		if (wantedName) return all().filter((block) => block.name === wantedName);
		if (call.index !== undefined && call.index !== null) return blocks.getBlocks().slice(call.index, call.index + 1);
		const selected = blocks.getSelectedBlock();
		return selected ? [selected] : [];
	};
	const one = () => matching()[0] || fail(call.clientId || wantedName || call.index !== undefined ? 'no block of the editor matches' : 'no block is selected; name one with clientId, index or blockName');
	const brief = (block) => ({ clientId: block.clientId, name: block.name });
	const create = (name, attributes, inner) => {
		if (!wp.blocks.getBlockType(name)) fail(`there is no block type ${limit(name, 100)}`);
		return wp.blocks.createBlock(name, attributes || {}, (inner || []).map((row) => (Array.isArray(row) ? create(...row) : create(row.name || row.blockName, row.attributes, row.innerBlocks))));
	};
	const settled = async (done, why) => {
		for (let at = 0; at < 600; at++) {
			if (done()) return;
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
		fail(why);
	};
	const save = async (status) => {
		await settled(() => !editor.isSavingPost() && !(editor.isPostSavingLocked && editor.isPostSavingLocked()), 'saving is locked');
		if (status) await wp.data.dispatch('core/editor').editPost({ status });
		await wp.data.dispatch('core/editor').savePost();
		await settled(() => !editor.isSavingPost(), 'saving did not end');
		if (editor.didPostSaveRequestFail()) {
			const notices = (store('core/notices').getNotices() || []).filter((notice) => notice.status === 'error').map((notice) => notice.content);
			fail(`the post was not saved: ${limit(notices.join(' ') || 'the request failed', 500)}`);
		}
		return { id: editor.getCurrentPostId(), status: limit(editor.getEditedPostAttribute('status'), 40) };
	};
	const includes = (found, wanted) => {
		if (wanted === null || typeof wanted !== 'object') return String(found) === String(wanted);
		return found !== null && typeof found === 'object' && Object.keys(wanted).every((name) => includes(found[name], wanted[name]));
	};
	const acts = {
		ready: () => ({ ready: ready() === '', why: ready() }),
		state,
		validity: () => validity(call.content),
		insertBlock: () => {
			const attributes = { ...(call.attributes || {}) };
			if (call.content !== undefined && call.content !== null) attributes.content = String(call.content);
			const block = create(wantedName, attributes, call.innerBlocks);
			wp.data.dispatch('core/block-editor').insertBlock(block, call.index === null ? undefined : call.index, call.rootClientId || undefined);
			if (!blocks.getBlock(block.clientId)) fail(`${block.name} cannot be inserted here`);
			return brief(block);
		},
		setContent: () => {
			wp.data.dispatch('core/block-editor').resetBlocks(wp.blocks.parse(String(call.content)));
			return { blocks: blocks.getBlockCount() };
		},
		selectBlock: () => {
			const block = one();
			wp.data.dispatch('core/block-editor').selectBlock(block.clientId);
			return brief(block);
		},
		updateBlock: () => {
			const block = one();
			wp.data.dispatch('core/block-editor').updateBlockAttributes(block.clientId, call.attributes);
			return brief(block);
		},
		removeBlock: () => {
			const block = one();
			wp.data.dispatch('core/block-editor').removeBlock(block.clientId);
			if (blocks.getBlock(block.clientId)) fail('the block cannot be removed');
			return brief(block);
		},
		moveBlock: () => {
			const block = one();
			const root = blocks.getBlockRootClientId(block.clientId) || '';
			wp.data.dispatch('core/block-editor').moveBlockToPosition(block.clientId, root, root, call.to);
			return { ...brief(block), index: blocks.getBlockIndex(block.clientId) };
		},
		setTitle: async () => {
			const given = [call.title, call.value, call.text].find((text) => text !== undefined && text !== null);
			await wp.data.dispatch('core/editor').editPost({ title: String(given) });
			return { title: limit(editor.getEditedPostAttribute('title'), 500) };
		},
		save: () => save(''),
		publish: () => save('publish'),
		undo: async () => {
			if (!editor.hasEditorUndo()) fail('there is nothing to undo');
			await wp.data.dispatch('core/editor').undo();
			return { hasUndo: editor.hasEditorUndo() };
		},
		redo: async () => {
			if (!editor.hasEditorRedo()) fail('there is nothing to redo');
			await wp.data.dispatch('core/editor').redo();
			return { hasRedo: editor.hasEditorRedo() };
		},
		assertValid: () => {
			const { results, ...counts } = validity();
			const wrong = results.filter((row) => !row.isValid);
			if (wrong.length) fail(`${wrong.length} of ${counts.total_blocks} blocks are not valid; the first: ${wrong[0].name}: ${limit(wrong[0].issues[0], 300)}`);
			return counts;
		},
		expectBlock: () => {
			const found = matching().filter((block) => includes(block.attributes, call.attributes || {}));
			const count = call.count === undefined || call.count === null ? null : call.count;
			if (count === null ? found.length === 0 : found.length !== count) fail(`${found.length} blocks match, but ${count === null ? 'at least 1' : count} should`);
			return { count: found.length };
		},
	};
	if (call.act !== 'ready' && ready() !== '') fail(ready());
	return acts[call.act]();
})
